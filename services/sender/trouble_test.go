package sender

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/test/rig"
)

// witness sees what a sender broadcasts, and may keep it from the nodes.
type witness struct {
	node
	mute     atomic.Bool
	swallows atomic.Bool // what it says it took
	mu       sync.Mutex
	sent     [][]byte
}

func (w *witness) on(s *Sender) { w.node, s.node = s.node, w }

func (w *witness) SendRaw(ctx context.Context, raw []byte) error {
	w.mu.Lock()
	w.sent = append(w.sent, raw)
	w.mu.Unlock()
	if w.mute.Load() {
		return errors.New("the connection broke")
	}
	if w.swallows.Load() {
		return nil
	}
	return w.node.SendRaw(ctx, raw)
}

func (w *witness) broadcasts() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([][]byte(nil), w.sent...)
}

// The world misbehaves; each job is executed once all the same.
func TestTrouble(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i, c := range []struct {
		name string
		run  func(*testing.T, *site, chain.Address, secret.String)
	}{
		{"the answer to a broadcast is lost", lostAnswer},
		{"the answer to a claim is lost", lostClaim},
		{"the signer cannot pay for a while", notPaidFor("insufficient funds for gas * price + value: have 1 want 2",
			"cannot pay")},
		{"somebody else is first", lostRace},
		{"somebody else has the key", stolenKey},
		{"bytes that no node takes free their nonce", fatalPayload},
		{"what is not mined is raised", raised},
		{"the cheaper transaction is mined", cheaperMined},
		{"nodes want more", tooCheap("transaction underpriced: gas tip cap 1, minimum needed 2")},
		{"the job is done elsewhere before ours is mined", cancelledInFlight},
		{"an operator calls it off", calledOff},
		{"a signer whose every byte is refused is paused", fatalSigner},
		{"the sender is asked to stop", handedOver},
		{"the database is away for a while", databaseAway},
		{"nodes refuse in words that nobody knows", notPaidFor("the moon is in the wrong house", "wrong house")},
	} {
		by, key := s.keeper(i % devnet.Keepers)
		t.Run(c.name, func(t *testing.T) { c.run(t, s.in(t), by, key) })
	}
}

// An answer that was lost says nothing: the same bytes are sent again, and the node says that it knows them.
func lostAnswer(t *testing.T, s *site, by chain.Address, key secret.String) {
	before, w := s.nonce(by), &witness{}
	j := s.orderJob(s.marketOrder(100), by)
	if err := s.Node().
		Inject(evmnode.Fault{Method: "eth_sendRawTransaction", Times: 1, DropReply: true}); err != nil {
		t.Fatal(err)
	}
	s.say(j)
	s.sender([]secret.String{key}, w.on)
	s.mustEndOnce(j, by, before)
	s.mustBeStored(j, w.broadcasts())
}

// forgetful loses the answers to the first claims: of the first, the request never arrives; of the second, only the
// answer is lost.
type forgetful struct {
	txm.Store
	claims atomic.Int32
	// early is how many broadcasts there had been when the first claim that arrived was made, as broadcasts says.
	early      atomic.Int32
	broadcasts func() [][]byte
}

var errCut = errors.New("unexpected EOF")

func (f *forgetful) Claim(ctx context.Context, fence lease.Fence, b txm.Batch) error {
	switch f.claims.Add(1) {
	case 1:
		return errCut
	case 2:
		f.early.Store(int32(len(f.broadcasts())))
		return errors.Join(f.Store.Claim(ctx, fence, b), errCut)
	}
	return f.Store.Claim(ctx, fence, b)
}

// NON-3: the claim is looked up, and nothing is signed blindly.
func lostClaim(t *testing.T, s *site, by chain.Address, key secret.String) {
	before, w := s.nonce(by), &witness{}
	f := &forgetful{broadcasts: w.broadcasts}
	s.sender([]secret.String{key}, w.on, func(sn *Sender) { f.Store, sn.intents = sn.intents, f })
	first, second := s.orderJob(s.marketOrder(100), by), s.orderJob(s.marketOrder(110), by)
	s.say(first, second)
	for _, j := range []job.Job{first, second} {
		if r := s.result(j.ID, 1); r.Outcome != job.Done || r.TxHash.IsZero() {
			t.Errorf("result %+v", r)
		}
	}
	if got := s.nonce(by); got != before+2 {
		t.Errorf("%d transactions for two jobs", got-before)
	}
	seen := map[chain.Hash]bool{}
	for _, raw := range w.broadcasts() {
		seen[chain.Keccak256(raw)] = true
	}
	if len(seen) != 2 {
		t.Errorf("%d different transactions were broadcast for two jobs", len(seen))
	}
	// the same bytes may be signed again and stored then: a broadcast too early is seen at its time alone
	if n := f.early.Load(); n > 0 {
		t.Errorf("%d transactions were broadcast that nobody had stored", n)
	}
}

// A refusal that no price mends, whether it is understood or not: the signer keeps its nonce, claims nothing more,
// offers no more than it did, and offers that more seldom. Readiness has the node's own words and how often it said
// them. It goes on by itself.
func notPaidFor(answer, says string) func(*testing.T, *site, chain.Address, secret.String) {
	return func(t *testing.T, s *site, by chain.Address, key secret.String) {
		s.impatient()
		before, w := s.nonce(by), &witness{}
		first := s.orderJob(s.marketOrder(100), by)
		if err := s.Node().Inject(evmnode.Fault{Method: "eth_sendRawTransaction", Error: answer}); err != nil {
			t.Fatal(err)
		}
		cleared := sync.OnceFunc(s.Node().ClearFaults)
		defer cleared()
		sn := s.sender([]secret.String{key}, w.on)
		s.say(first)
		begun := sn.headTracker.Number()
		s.eventually("the broadcasts were refused for longer than prices wait",
			func(context.Context) bool { return len(w.broadcasts()) > 3 })
		if passed := sn.headTracker.Number() - begun; passed < 12 {
			t.Errorf("four broadcasts in %d blocks", passed)
		}
		s.eventually("readiness says why, before anything else waits",
			func(context.Context) bool { return sn.notices.has(says) && sn.notices.has(" times: ") })
		second := first
		second.ID, second.Key = job.OrderID(chain.Hash{7}, 1), chain.Hash{7}
		s.say(second)
		s.eventually("the other job waits", func(ctx context.Context) bool {
			depth, err := sn.intents.Depth(ctx, by)
			return err == nil && depth == 1
		})
		if inFlight, err := sn.intents.InFlight(t.Context(), by); err != nil || len(inFlight) != 1 ||
			len(inFlight[0].Txs) != 1 {
			t.Errorf("in flight: %+v, %v", inFlight, err)
		}
		cleared()
		s.mustEndOnce(first, by, before)
		if r := s.result(second.ID, 1); r.Outcome != job.SkippedDone {
			t.Errorf("the other job ended as %+v", r)
		}
	}
}

// Bytes that no node will ever take are replaced by a payment to oneself at their nonce: the attempt ends, and what
// comes after it can be mined.
func fatalPayload(t *testing.T, s *site, by chain.Address, key secret.String) {
	before := s.nonce(by)
	j := s.orderJob(s.marketOrder(100), by)
	if err := s.Node().
		Inject(evmnode.Fault{Method: "eth_sendRawTransaction", Times: 1,
			Error: "intrinsic gas too low: have 1, want 2"}); err != nil {
		t.Fatal(err)
	}
	s.sender([]secret.String{key})
	s.say(j)
	if r := s.result(j.ID, 1); r.Outcome != job.Refused || r.TxHash.IsZero() || r.GasUsed != txm.EmptyGas ||
		r.Nonce != before {
		t.Errorf("result %+v", r)
	}
	next := s.orderJob(s.marketOrder(100), by)
	s.say(next)
	if r := s.result(next.ID, 1); r.Outcome != job.Done || r.Nonce != before+1 {
		t.Errorf("the next job ended as %+v", r)
	}
	s.mustBeDeadLetter(j, job.Refused)
}

// mustBeDeadLetter demands that a job that was given up can be said again from the dead letter topic (LIQ-10).
func (s *site) mustBeDeadLetter(j job.Job, o job.Outcome) {
	s.t.Helper()
	for _, r := range rig.Records(s.t, s.client, wire.DeadLetterTopic(s.cfg.Keeper.ChainID), 0) {
		m, _, err := wire.Decode(r)
		if err != nil {
			s.t.Fatal(err)
		}
		said, is := m.(wire.Job)
		if !is || said.ID != j.ID {
			continue
		}
		where, how := fmt.Sprint(wire.SignerPartition(j.Signer, s.cfg.Keeper.JobPartitions)), string(o)
		if said.Job.Evidence = j.Evidence; !reflect.DeepEqual(said.Job, j) || header(r, "source.partition") != where ||
			header(r, "outcome") != how {
			s.t.Errorf("the dead letter is %+v with headers %v", said, r.Headers)
		}
		return
	}
	s.t.Errorf("%s is not among the dead letters", j.ID)
}

func header(r bus.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// And if that is refused for good too, the signer rests until somebody has looked.
func fatalSigner(t *testing.T, s *site, by chain.Address, key secret.String) {
	j := s.orderJob(s.marketOrder(100), by)
	if err := s.Node().
		Inject(evmnode.Fault{Method: "eth_sendRawTransaction",
			Error: "intrinsic gas too low: have 1, want 2"}); err != nil {
		t.Fatal(err)
	}
	defer s.Node().ClearFaults()
	sn := s.sender([]secret.String{key})
	s.say(j)
	later := j
	later.ID, later.Key = job.OrderID(chain.Hash{8}, 1), chain.Hash{8}
	s.eventually("nothing more is claimed", func(ctx context.Context) bool {
		s.say(later)
		heads, err := sn.intents.Heads(ctx, by, txm.Pick{Limit: 9})
		depth, err2 := sn.intents.Depth(ctx, by)
		inFlight, err3 := sn.intents.InFlight(ctx, by)
		return errors.Join(err, err2, err3) == nil && len(heads) == 0 && depth == 1 && len(inFlight) == 1
	})
}

// A sender that is asked to stop gives its leases back: the successor need not wait for them to run out, which here
// they would not within the test.
func handedOver(t *testing.T, s *site, by chain.Address, key secret.String) {
	s.cfg.Sender.LeaseTTL = 10 * hangGuard
	before := s.nonce(by)
	first := s.sender([]secret.String{key})
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.mustEndOnce(j, by, before)
	second := s.sender([]secret.String{key})
	first.stop()
	k := s.orderJob(s.marketOrder(100), by)
	s.say(k)
	s.mustEndOnce(k, by, before+1)
	second.stop()
}

// Everything waits, nothing is lost, and the process lives on.
func databaseAway(t *testing.T, s *site, by chain.Address, key secret.String) {
	proxy := pgtest.NewProxy(t, s.cfg.Postgres.URL.Reveal())
	s.cfg.Postgres.URL = secret.MustURL(proxy.URL())
	before, w := s.nonce(by), &witness{}
	w.mute.Store(true)
	sn := s.sender([]secret.String{key}, w.on)
	first := s.orderJob(s.marketOrder(100), by)
	s.say(first)
	s.eventually("the first job is signed", func(context.Context) bool { return len(w.broadcasts()) > 0 })
	proxy.Refuse(true)
	w.mute.Store(false)
	second := s.orderJob(s.marketOrder(110), by)
	s.say(second)
	s.eventually("the reason is given", func(context.Context) bool {
		return sn.notices.has("signer") &&
			sn.notices.has("partition")
	})
	proxy.Refuse(false)
	for i, j := range []job.Job{first, second} {
		if r := s.result(j.ID, 1); r.Outcome != job.Done || r.Nonce != before+uint64(i) {
			t.Errorf("result %+v", r)
		}
	}
	if got := s.nonce(by); got != before+2 {
		t.Errorf("%d transactions for two jobs", got-before)
	}
}

// has reports whether a reason is given at this moment.
func (n *notices) has(text string) bool {
	err := n.healthy(context.Background())
	return err != nil && strings.Contains(err.Error(), text)
}
