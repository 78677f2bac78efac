package txmanager

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// LIQ-10: people are told of what waits for its receipt for too long, once. What it waited for its turn before it was
// sent does not count.
func TestLateReceiptsAreTold(t *testing.T) {
	now, metrics := time.Now(), NewMetrics(prometheus.NewRegistry())
	var log strings.Builder
	on := duty{turns: alone{}, heads: headtrack.New(time.Now), metrics: metrics, log: zerolog.New(&log)}
	c := &confirm{
		view: view{duty: on, broadcast: &broadcast{duty: on, last: map[chain.Hash]sent{}}},
		ages: newAges(func() time.Time { return now }, 10*time.Second),
	}
	f := txm.PendingTx{Txs: []txm.Tx{{}}}
	f.Intent = txm.Intent{ID: 1, Job: job.Job{Kind: job.Liquidation}, Waited: time.Minute}
	told := func() int { return strings.Count(log.String(), "no receipt yet") }
	for i, want := range []int{0, 0, 1, 1} {
		c.remember([]txm.PendingTx{f})
		if c.watch(f, txm.Observation{}); told() != want {
			t.Errorf("after %d s: told %d times", 5*i, told())
		}
		now = now.Add(5 * time.Second)
	}
	if c.remember(nil); len(c.ages.known) != 0 {
		t.Errorf("remembers %v of what is no longer in flight", c.ages.known)
	}
}

// pendingStore is a store with pending transactions that nobody may change.
type pendingStore struct {
	told
	inFlight []txm.PendingTx
}

func (s *pendingStore) InFlight(context.Context, chain.Address) ([]txm.PendingTx, error) {
	return s.inFlight, nil
}

// noReceipts is a node on which nothing is mined.
type noReceipts struct {
	minedCount
	heads *headtrack.Tracker
}

func (n *noReceipts) Receipt(context.Context, chain.Hash) (*evm.Receipt, error) {
	return nil, nil //nolint:nilnil // as of the node's own answer
}

// mine adds a block with another of the signer's transactions.
func (n *noReceipts) mine() {
	n.says.Agreed, n.says.Newest = n.says.Agreed+1, n.says.Newest+1
	n.heads.Set(chain.BlockRef{Number: n.heads.Number() + 1, TimeMs: nowMs}, time.Now())
}

var errNotLooked = errors.New("nobody looks today")

func (n *noReceipts) Finalized(context.Context) (chain.BlockRef, error) {
	return chain.BlockRef{}, nil
}
func (n *noReceipts) Head(context.Context) (chain.BlockRef, error) { return chain.BlockRef{}, nil }

// LIQ-6: a pass over many pending transactions takes longer than a block. The slots of what is mined meanwhile are
// given back at each head, and not at the next pass.
func TestSlotsAreFreeWhilePendingAreFollowed(t *testing.T) {
	node, freed, pressed := &noReceipts{heads: headsAt(nowMs, time.Now())}, 0, 0
	node.says = evm.MinedNonce{Agreed: 9, Sure: true, Newest: 9}
	store := &pendingStore{}
	for n := range uint64(5) {
		signed := txm.SignedTx{Hash: chain.Hash{byte(n) + 1}}
		f := txm.PendingTx{Txs: []txm.Tx{{Kind: txm.Exec, SignedTx: signed}}}
		f.Intent = txm.Intent{ID: int64(n) + 1, Nonce: n, Job: job.Job{Kind: job.Liquidation}}
		store.inFlight = append(store.inFlight, f)
	}
	on := newQueueTest(t, nil).duty
	on.node, on.store, on.heads = node, store, node.heads
	v := view{duty: on, broadcast: &broadcast{duty: on, last: map[chain.Hash]sent{}}}
	c := &confirm{view: v, waiting: new(waiting), ages: newAges(time.Now, time.Hour)}
	c.landing, c.renewal.market = &landing{view: v, freed: func() { freed++ }}, marketAt(0)
	c.renewal.recheck = func(context.Context, *Task) (Verdict, error) {
		if pressed++; pressed > 2 {
			node.mine()
		}
		return Verdict{}, errNotLooked
	}
	if err := c.pass(t.Context()); !errors.Is(err, errNotLooked) {
		t.Errorf("the pass ended with %v", err)
	}
	if !slices.Equal(store.below, []uint64{9, 10, 11}) || freed != 3 { // the first look counts
		t.Errorf("the store was told %v, slots were freed %d times", store.below, freed)
	}
}

// endingWindow is a node on which nothing is mined. The turn is over when it is first given something to broadcast.
type endingWindow struct {
	noReceipts
	turns     *windows
	broadcast int
}

func (n *endingWindow) Head(context.Context) (chain.BlockRef, error) {
	return chain.BlockRef{Number: 100}, nil
}

func (n *endingWindow) SendRaw(context.Context, []byte) error {
	n.broadcast++
	n.turns.over = &Verdict{Kind: Defer, Reason: "the next window"}
	return nil
}

// noting is a store that takes answers to broadcasts.
type noting struct{ pendingStore }

func (noting) Noted(context.Context, lease.Fence, chain.Hash, string, bool) error { return nil }

// TIER-9: many pending transactions are looked at together, and broadcasting them again takes long. Each is broadcast
// only while the turn is ours at that moment.
func TestNothingIsBroadcastLate(t *testing.T) {
	turns := &windows{}
	node, store, left := &endingWindow{turns: turns}, &noting{}, 0
	on := newQueueTest(t, nil).duty
	on.node, on.store, on.heads, on.turns = node, store, headsAt(nowMs, time.Now()), turns
	b := &broadcast{duty: on, last: map[chain.Hash]sent{}}
	for n := range uint64(3) {
		signed := txm.SignedTx{Hash: chain.Hash{byte(n) + 1}, Nonce: n}
		f := txm.PendingTx{Txs: []txm.Tx{{Kind: txm.Exec, SignedTx: signed}}}
		f.Intent = txm.Intent{ID: int64(n) + 1, Nonce: n, Job: job.Job{Kind: job.Order}}
		store.inFlight = append(store.inFlight, f)
		// which is long enough ago for the same bytes once more
		b.last[signed.Hash] = sent{first: 98, last: 98, pooled: true}
	}
	v := view{duty: on, broadcast: b}
	c := &confirm{view: v, waiting: new(waiting), ages: newAges(time.Now, time.Hour)}
	c.landing, c.renewal.market = &landing{view: v, freed: func() {}}, marketAt(0)
	c.renewal.recheck = func(context.Context, *Task) (Verdict, error) {
		left++
		return Wait("it is another keeper's"), nil
	}
	if err := c.pass(t.Context()); err != nil || node.broadcast != 1 || left != 2 {
		t.Errorf("%d pending transactions were broadcast, %d left to the other keeper; %v", node.broadcast, left, err)
	}
}

// losing is a store that takes the end of what is somebody else's, and knows why the signer is paused.
type losing struct {
	txm.Store
	paused string
}

func (losing) NonceLost(context.Context, lease.Fence, int64, txm.Ending) error { return nil }
func (s losing) Paused(_ context.Context, _ chain.Address) (reason string, _ error) {
	return s.paused, nil
}

// That the signer is paused is said where it is, as an alarm, and not of a number that the last resync has accounted
// for.
func TestWhatIsSaidOfASpentNonce(t *testing.T) {
	for paused, want := range map[string]string{"spent": "the signer is paused until", "": "the signer is not paused"} {
		var out bytes.Buffer
		on := duty{term: newQueueTest(t, nil).term, node: noEndpoints{}, store: losing{paused: paused},
			metrics: NewMetrics(prometheus.NewRegistry()), log: zerolog.New(&out)}
		c := &confirm{view: view{duty: on}, ended: func() {},
			rest: func(txm.Intent, job.Outcome) txm.Rest { return txm.Rest{} }}
		if err := c.nonceLost(t.Context(), txm.PendingTx{}, txm.Observation{}); err != nil {
			t.Fatal(err)
		}
		alarm := strings.Contains(out.String(), `"critical":true`) && strings.Contains(out.String(), `"level":"error"`)
		if !strings.Contains(out.String(), want) || alarm != (paused != "") {
			t.Errorf("paused %q: %s", paused, out.String())
		}
	}
}

// NON-16: a nonce is somebody else's when two hosts say so, each for itself: that it was spent, and that none of ours
// was mined. One that lacks a receipt of ours, or lies, ends no job and pauses nobody.
func TestOneHostLosesNoNonce(t *testing.T) {
	says := map[string]string{"eth_getTransactionCount": `"0x9"`, "eth_getTransactionReceipt": "null"}
	one, other := startRPC(t), startRPC(t)
	one.results = says
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(one.URL),
		secret.MustURL(strings.Replace(other.URL, "127.0.0.1", "localhost", 1))} // another host
	node, err := evm.Dial(t.Context(), 56, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	lost := 0
	on := duty{term: newQueueTest(t, nil).term, node: node, store: losing{}, limits: limits{},
		metrics: NewMetrics(prometheus.NewRegistry()), log: zerolog.Nop()}
	c := &confirm{view: view{duty: on}, ended: func() { lost++ },
		rest: func(txm.Intent, job.Outcome) txm.Rest { return txm.Rest{} }}
	ours := txm.PendingTx{Intent: txm.Intent{Nonce: 8}, Txs: []txm.Tx{{SignedTx: txm.SignedTx{Hash: chain.Hash{1}}}}}
	seen := txm.Observation{Head: 1, Sent: txm.Sending{Ever: true, First: 1, Last: 1}}
	if err := c.nonceLost(t.Context(), ours, seen); err == nil || lost != 0 {
		t.Errorf("by one host's word: %v, %d lost", err, lost)
	}
	other.mu.Lock()
	other.results = says
	other.mu.Unlock()
	if err := c.nonceLost(t.Context(), ours, seen); err != nil || lost != 1 {
		t.Errorf("by two hosts' word: %v, %d lost", err, lost)
	}
}

// noEndpoints is a node that names none: nobody has to agree.
type noEndpoints struct{ Node }

func (noEndpoints) Endpoints() []evm.EndpointStatus { return nil }

// A receipt that a reorg has just taken back: our own state may still call the job done, so nobody looks at it anew,
// and the same bytes go out again. Once the state has left that branch it is looked at as ever.
func TestReorgCallsNothingOff(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Verdict{}, nil })
	if claimed := o.claimOf(t, 1, devKey(t), 1e18); len(claimed) != 1 {
		t.Fatal("nothing was claimed")
	}
	inFlight, err := txstore.NewIntents(o.db).InFlight(t.Context(), o.signer)
	if err != nil || len(inFlight) != 1 {
		t.Fatal(inFlight, err)
	}
	now, looked, node := time.Now(), 0, &talkative{}
	b := &broadcast{last: map[chain.Hash]sent{}, duty: duty{term: o.term, node: node,
		heads: headsAt(nowMs, time.Now()), store: o.store, metrics: o.metrics, log: zerolog.Nop()}}
	c := &confirm{ages: newAges(func() time.Time { return now }, time.Hour), view: view{duty: b.duty, broadcast: b}}
	c.renewal = renewal{broadcast: b, recheck: func(context.Context, *Task) (Verdict, error) {
		looked++
		return Wait("premature"), nil
	}}
	c.ages.see(inFlight[0].Intent.ID).lost = now
	for i, want := range []int{0, 1} {
		if err := c.act(t.Context(), &look{PendingTx: inFlight[0], step: txm.Resume}); err != nil {
			t.Fatal(err)
		}
		if looked != want || node.public.Load() != int32(i+1) {
			t.Errorf("%s after the reorg: looked at %d times, broadcast %d times", now, looked, node.public.Load())
		}
		now = now.Add(settleAfter)
	}
}
