package txmanager

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
)

func TestBroadcastRemembersWhatItSent(t *testing.T) {
	one, two := chain.Hash{1}, chain.Hash{2}
	b := &broadcast{last: map[chain.Hash]sent{}, duty: duty{heads: headsAt(nowMs, time.Now())}} // at block 100
	if b.sending(one).Ever {
		t.Error("an adopted transaction was never broadcast by this lease term")
	}
	b.expect(one)
	b.heads.Set(chain.BlockRef{Number: 103}, time.Now())
	b.expect(one)
	if got := b.sending(one); got != (txm.Sending{Ever: true, First: 100, Last: 103}) {
		t.Errorf("broadcast at %+v", got)
	}
	for _, c := range []struct {
		class         evm.Class
		fresh, pooled txm.Answer // of what no node had, and of what one had
	}{
		{evm.Accepted, txm.Pooled, txm.Pooled}, {evm.Ambiguous, txm.Unpooled, txm.Pooled},
		{evm.ResolveByHash, txm.Unpooled, txm.Pooled}, {evm.BumpToMin, txm.TooCheap, txm.TooCheap},
		{evm.OtherTxAtNonce, txm.TooCheap, txm.TooCheap}, {evm.FatalPayload, txm.Never, txm.Never},
		{evm.PauseSigner, txm.Unpooled, txm.Unpooled}, {evm.RetryElsewhere, txm.Unpooled, txm.Unpooled},
		{evm.GapOrLimit, txm.Unpooled, txm.Unpooled}, {evm.SerializeSigner, txm.Unpooled, txm.Unpooled},
		{evm.FeeCapped, txm.Unpooled, txm.Unpooled}, {evm.Reverted, txm.Unpooled, txm.Unpooled},
	} {
		for had, want := range map[evm.Class]txm.Answer{evm.PauseSigner: c.fresh, evm.Accepted: c.pooled} {
			b.answered(one, had, "")
			b.answered(one, c.class, "a says no")
			if got := b.sending(one).Answer; got != want {
				t.Errorf("%s after %s asks for %d, want %d", c.class, had, got, want)
			}
		}
	}
	b.answered(one, evm.Accepted, "")
	if !b.answered(one, evm.PauseSigner, "") || b.answered(one, evm.PauseSigner, "") {
		t.Error("the first answer is news, its repetition is not")
	}
	b.answered(two, evm.Accepted, "")
	if b.held() == "" {
		t.Error("a signer without means must be known as one, also when another transaction of it was taken")
	}
	b.answered(one, evm.Accepted, "")
	if b.held() != "" {
		t.Error("an accepted transaction was paid for")
	}
	b.answered(two, evm.GapOrLimit, "")
	if b.held() == "" {
		t.Error("nodes that take no more must be heeded")
	}
	b.forget(map[chain.Hash]bool{one: true, two: false})
	if b.held() != "" || !b.sending(two).Ever {
		t.Error("what was answered to bytes that are broadcast no more holds the signer back, or when they were is " +
			"forgotten")
	}
	b.answered(two, evm.GapOrLimit, "")
	b.forget(map[chain.Hash]bool{one: true})
	if b.held() != "" || b.sending(two).Ever || !b.sending(one).Ever {
		t.Error("what is no longer in flight is not forgotten, or what is, is")
	}
}

// Whatever nodes refuse in words that are not understood is named after the third time, with their words and how often,
// and nothing more is claimed until one of them takes it. Such words take nothing back that a node has taken: they may
// say that it has it.
func TestRefusalsThatNobodyUnderstands(t *testing.T) {
	hash := chain.Hash{1}
	b := &broadcast{last: map[chain.Hash]sent{}, duty: duty{heads: headsAt(nowMs, time.Now())}}
	for _, c := range []struct {
		class evm.Class
		words string
		held  string
	}{
		{evm.Ambiguous, `a says "no"`, ""}, {evm.Ambiguous, "", ""}, {evm.Ambiguous, `a says "no"`, ""},
		{evm.Ambiguous, `a says "no"`, `(3 times: a says "no")`},
		{evm.FeeCapped, `a says "fee"`, `(4 times: a says "fee")`},
		{evm.Accepted, "", ""}, {evm.Ambiguous, `a says "seen"`, ""}, {evm.Ambiguous, `a says "seen"`, ""},
		{evm.Ambiguous, `a says "seen"`, ""}, {evm.SerializeSigner, `a says "one"`, `(1 times: a says "one")`},
	} {
		b.expect(hash)
		b.answered(hash, c.class, c.words)
		if held := b.held(); !strings.HasSuffix(held, c.held) || (held == "") != (c.held == "") {
			t.Errorf("%s, %s: held for %q, want %q", c.class, c.words, held, c.held)
		}
	}
	if s := b.sending(hash); s.Refused != 1 || s.Answer != txm.Unpooled {
		t.Errorf("it is %+v", s)
	}
}

// What was refused for long and is taken then is as good as new: it is not raised for the time in which no node had it.
// What was mined makes room, and ends the pauses of what nodes took no more of.
func TestTakenAfterRefusalsIsNew(t *testing.T) {
	hash := chain.Hash{1}
	b := &broadcast{last: map[chain.Hash]sent{}, duty: duty{heads: headsAt(nowMs, time.Now())}}
	for range 5 {
		b.expect(hash)
		b.answered(hash, evm.SerializeSigner, `a says "one at a time"`)
	}
	if b.roomMade(); b.sending(hash).Refused != 1 {
		t.Errorf("after something was mined: %+v", b.sending(hash))
	}
	b.heads.Set(chain.BlockRef{Number: 200}, time.Now())
	b.expect(hash)
	b.answered(hash, evm.Accepted, "")
	if s := b.sending(hash); s.First != 200 || s.Answer != txm.Pooled {
		t.Errorf("taken at block 200: %+v", s)
	}
	b.heads.Set(chain.BlockRef{Number: 201}, time.Now())
	b.answered(hash, evm.Accepted, "")
	if s := b.sending(hash); s.First != 200 {
		t.Errorf("taken again: %+v", s)
	}
}

// A transaction that was broadcast before the first head came is as old as the first head that it is broadcast at: it
// is neither late nor to be raised at once.
func TestBroadcastBeforeTheFirstHead(t *testing.T) {
	h := headtrack.New(time.Now)
	b := &broadcast{last: map[chain.Hash]sent{}, duty: duty{heads: h}, shared: true}
	pending := txm.PendingTx{Txs: []txm.Tx{{SignedTx: txm.SignedTx{Hash: chain.Hash{1}}}}}
	next := func(head uint64) txm.Step {
		return txm.DefaultPolicy().Next(pending, txm.Observation{Head: head, Sent: b.sending(chain.Hash{1})})
	}
	b.expect(chain.Hash{1})
	h.Set(chain.BlockRef{Number: 100}, time.Now())
	b.answered(chain.Hash{1}, evm.Accepted, "")
	if b.checkStall([]txm.PendingTx{pending}); b.held() != "" || next(100) != txm.Broadcast {
		t.Errorf("held: %q, next: %s", b.held(), next(100))
	}
	b.expect(chain.Hash{1})
	if got := b.sending(chain.Hash{1}); got.First != 100 || next(101) != txm.Wait {
		t.Errorf("sent at %+v, next: %s", got, next(101))
	}
}

// An heir knows of an old nonce only what it has broadcast itself.
func TestHeirClaimsNothingBehindWhatDoesNotLand(t *testing.T) {
	h := headsAt(nowMs, time.Now())
	b := &broadcast{last: map[chain.Hash]sent{}, duty: duty{heads: h}, shared: true}
	b.expect(chain.Hash{2})
	head, _ := h.Newest()
	head.Number += stall
	h.Set(head, time.Now())
	b.checkStall([]txm.PendingTx{{Txs: []txm.Tx{{SignedTx: txm.SignedTx{Hash: chain.Hash{1}}},
		{SignedTx: txm.SignedTx{Hash: chain.Hash{2}}}}}})
	if b.held() == "" {
		t.Error("not held, though the raised transaction that was adopted does not land")
	}
}

// TIER-8: among keepers, one whose transactions do not land claims no more until they do: others have the jobs done,
// and what comes late loses. A keeper that is alone claims on.
func TestClaimsNothingBehindWhatDoesNotLand(t *testing.T) {
	mined := &txm.Receipt{TxHash: chain.Hash{1}}
	for name, c := range map[string]struct {
		shared bool
		blocks uint64
		mined  *txm.Receipt
		held   bool
	}{
		"just sent":     {true, stall - 1, nil, false},
		"does not land": {true, stall, nil, true},
		"has landed":    {true, stall, mined, false},
		"alone":         {false, stall, nil, false},
	} {
		h := headsAt(nowMs, time.Now())
		b := &broadcast{last: map[chain.Hash]sent{}, duty: duty{heads: h}, shared: c.shared}
		first, raised := txm.SignedTx{Hash: chain.Hash{1}}, txm.SignedTx{Hash: chain.Hash{2}}
		b.expect(first.Hash)
		head, _ := h.Newest()
		head.Number += c.blocks
		h.Set(head, time.Now())
		b.expect(raised.Hash) // a moment ago: the nonce is as old as its first transaction
		b.checkStall([]txm.PendingTx{{Txs: []txm.Tx{{SignedTx: first}, {SignedTx: raised}}, Mined: c.mined}})
		if held := b.held() != ""; held != c.held {
			t.Errorf("%s: held %v (%s)", name, held, b.held())
		}
		if b.checkStall(nil); b.held() != "" {
			t.Errorf("%s: held without anything in flight", name)
		}
	}
}

// talkative is a node and a block builder; the builder refuses everything.
type talkative struct {
	Node
	public, private atomic.Int32
	untilMs         atomic.Uint64 // of the last private one
}

func (n *talkative) SendRaw(context.Context, []byte) error {
	n.public.Add(1)
	return nil
}

func (n *talkative) SendPrivate(_ context.Context, _ []byte, untilMs uint64) error {
	n.private.Add(1)
	n.untilMs.Store(untilMs)
	return errors.New("no")
}

// Builders get the same bytes, and their answer decides nothing.
func TestBuildersAreToldToo(t *testing.T) {
	for _, builders := range []bool{false, true} {
		n := &talkative{}
		b := &broadcast{privacy: privacy{cfg: Private{Endpoints: builders}},
			duty: duty{node: n, metrics: NewMetrics(prometheus.NewRegistry())}}
		if err := b.transmit(t.Context(), []byte{1}, 0); err != nil {
			t.Error(err)
		}
		b.close()
		if told := n.private.Load() == 1; n.public.Load() != 1 || told != builders {
			t.Errorf("builders %t: told %t", builders, told)
		}
	}
}

// What is private for some time is bounded by it on the chain's clock; what is public as well is not.
func TestPrivateTimeBoundsBundles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &talkative{}
		b := &broadcast{privacy: privacy{cfg: Private{Endpoints: true}}, duty: duty{node: n,
			heads: headsAt(nowMs, time.Now()), metrics: NewMetrics(prometheus.NewRegistry())}}
		time.Sleep(300 * time.Millisecond) // the chain's clock runs on without a head
		for private, want := range map[time.Duration]uint64{2 * time.Second: nowMs + 2300, 0: 0} {
			_ = b.transmit(t.Context(), []byte{1}, private) // which is refused
			b.close()
			if got := n.untilMs.Load(); got != want {
				t.Errorf("private for %s: until %d, want %d", private, got, want)
			}
		}
	})
}

// lost has had its turn: another keeper's has begun.
type lost struct{ alone }

func (lost) Ask(job.Job) Turn { return Turn{Passed: true} }

// What nodes have answered in our window holds the signer back no longer than that lasts: in another keeper's nobody
// broadcasts the transaction, so that no other answer would come, and other jobs of ours would wait for one. What only
// frees its nonce is broadcast in anybody's window.
func TestAnswersOfFormerWindowsHoldNobodyBack(t *testing.T) {
	for _, class := range []evm.Class{evm.PauseSigner, evm.GapOrLimit, evm.SerializeSigner} {
		for kind, released := range map[txm.TxKind]bool{txm.Exec: true, txm.Cancel: false} {
			f := txm.PendingTx{Txs: []txm.Tx{{Kind: kind, SignedTx: txm.SignedTx{Hash: chain.Hash{1}}}}}
			on := duty{turns: alone{}, heads: headsAt(nowMs, time.Now()), metrics: NewMetrics(prometheus.NewRegistry())}
			b := &broadcast{duty: on, last: map[chain.Hash]sent{}}
			c := &confirm{view: view{duty: on, broadcast: b}, ages: newAges(time.Now, time.Hour),
				blocked: func(string) {}}
			b.expect(chain.Hash{1})
			b.answered(chain.Hash{1}, class, "")
			if c.remember([]txm.PendingTx{f}); b.held() == "" {
				t.Errorf("%s, %s: not held in our own window", class, kind)
			}
			c.turns = lost{}
			c.remember([]txm.PendingTx{f})
			if got := b.held() == ""; got != released || !b.sending(chain.Hash{1}).Ever {
				t.Errorf("%s, %s: in another keeper's window it says %q", class, kind, b.held())
			}
			if _, refused := b.waiting([]txm.PendingTx{f}, 0); refused && released {
				t.Errorf("%s, %s: the limits follow an old answer", class, kind)
			}
		}
	}
}
