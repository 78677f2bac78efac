package txmanager

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// What is left of a day's money is spent on the most urgent jobs, however many wait: a batch that it does not suffice
// for sets nothing of it aside.
func TestClaimSpendsWhatIsLeft(t *testing.T) {
	o := newQueueTest(t, nil)
	claimed := o.claimOf(t, 3, devKey(t), 2*callGas*txm.DefaultPolicy().Floor)
	if !slices.Equal(claimed, []uint64{0, 1}) || !strings.Contains(o.gates[len(o.gates)-1], "spent what it may") {
		t.Errorf("claimed those born at %v, the gate says %q", claimed, o.gates)
	}
	if got := o.outcomes(t); len(got) > 0 {
		t.Errorf("ended: %v", got)
	}
}

// A lane that has spent its money keeps no other from spending, and nodes are asked nothing about the rest of what it
// has queued.
func TestSpentLaneShutsNoOther(t *testing.T) {
	o, m, p := newQueueTest(t, nil), marketAt(0), aBudget(&books{}, "1", "0")
	p.limit.Cleanup = txm.Wei(chain.U64(1))
	o.claiming(1, devKey(t), p, m)
	o.stages = append([]Stage{{Name: paysStage, Run: pays{limits{}, m, p}.run}}, o.stages...)
	order := orderAt(3, 3)
	o.enqueue(t, order)
	cancels, _ := job.Deposit.Cancel()
	var spent []string
	for n := range byte(2) {
		j := orderAt(n, uint64(n))
		j.ID, j.Kind, j.Class = "cancel "+j.ID, cancels, job.ClassCleanup
		spent = append(spent, j.ID)
		o.enqueue(t, j)
	}
	if claimed := o.claimed(t); !slices.Equal(claimed, []uint64{3}) {
		t.Errorf("claimed those born at %v", claimed)
	}
	if want := []string{order.ID, spent[0]}; !slices.Equal(o.trail, want) {
		t.Errorf("looked at %v, want %v", o.trail, want)
	}
	if got := o.outcomes(t); len(got) > 0 || len(o.deferrals) != 2 {
		t.Errorf("ended: %v, waiting %d", got, len(o.deferrals))
	}
}

// A transaction that the signer refuses to sign keeps none that is less urgent from being claimed, is told while
// nothing else goes on, and ends like all that wait.
func TestClaimLeavesOutWhatIsRefused(t *testing.T) {
	o := newQueueTest(t, nil)
	key := picky{devKey(t), 1}
	if claimed := o.claimOf(t, 3, key, math.MaxInt64); !slices.Equal(claimed, []uint64{0, 2}) {
		t.Errorf("claimed those born at %v", claimed)
	}
	clear(o.deferrals)
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.gates[len(o.gates)-1]; !strings.Contains(got, "request denied") {
		t.Errorf("readiness is told %q", got)
	}
	o.maxWait = 0
	clear(o.deferrals)
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.outcomes(t); got[orderAt(1, 1).ID] != job.Expired {
		t.Errorf("ended: %v", got)
	}
}

// picky refuses to sign one call.
type picky struct {
	signer.Signer
	refused byte
}

func (p picky) Sign(ctx context.Context, tx signer.Tx) ([]byte, chain.Hash, error) {
	if tx.Data[0] == p.refused {
		return nil, chain.Hash{},
			fmt.Errorf("asking the signer: %w", &signer.RefusedError{Code: -32000, Message: "request denied"})
	}
	return p.Signer.Sign(ctx, tx)
}

// callGas is the gas limit of the calls in these tests.
const callGas = 100_000

// claimOf queues so many orders, the most urgent born first, makes a pass with a key and so much money, and returns
// when those were born that were claimed.
func (o *queueTest) claimOf(t *testing.T, orders byte, key signer.Signer, wei uint64) (claimed []uint64) {
	t.Helper()
	return o.claimAt(t, orders, key, wei, marketAt(0))
}

// claimAt is claimOf in a market.
func (o *queueTest) claimAt(t *testing.T, orders byte, key signer.Signer, wei uint64, m *market) (claimed []uint64) {
	t.Helper()
	p := aBudget(&books{}, "0", "0")
	p.limit.Day = txm.Wei(chain.U64(wei))
	o.claiming(int(orders), key, p, m)
	for i := range orders {
		o.enqueue(t, orderAt(i, uint64(i)))
	}
	return o.claimed(t)
}

// claiming has batches claimed with a key and a budget, in a market.
func (o *queueTest) claiming(batch int, key signer.Signer, p *budget, m *market) {
	o.stages = []Stage{{Name: "test", Run: func(_ context.Context, t *Task) (Verdict,
		error) {
		o.looked.Lock()
		o.trail = append(o.trail, t.Job().ID)
		o.looked.Unlock()
		t.Call = Call{Gas: callGas, Data: []byte{byte(t.Job().DueSinceMs)}}
		return Verdict{}, nil
	}}}
	o.batch = batch
	p.store, p.signer = txstore.NewIntents(o.db), o.signer
	o.funds, o.launch = p, func(context.Context, []*Task) {}
	o.claim = claim{
		signing: signing{duty: o.duty, key: key, chainID: 56, market: m, budget: p},
		cursor:  &cursor{known: &nonce.Cursor{}}, expect: func(chain.Hash) {}, patience: time.Minute,
	}.run
}

func (o *queueTest) enqueue(t *testing.T, j job.Job) {
	t.Helper()
	j.Signer = o.signer
	if _, err := txstore.NewIntents(o.db).Enqueue(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

// claimed makes a pass and returns when those were born that have a nonce after it.
func (o *queueTest) claimed(t *testing.T) (dueTimes []uint64) {
	t.Helper()
	if err := o.pass(t.Context()); err != nil {
		t.Error(err)
	}
	inFlight, err := txstore.NewIntents(o.db).InFlight(t.Context(), o.signer)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range inFlight {
		dueTimes = append(dueTimes, f.Intent.Job.DueSinceMs)
	}
	return dueTimes
}

// devKey is a key of no account in particular.
func devKey(t *testing.T) signer.Signer {
	t.Helper()
	cfg := signer.DefaultConfig()
	cfg.Dev, cfg.DevKeys = true, []secret.String{secret.New(strings.Repeat("11", 32))}
	keys, err := signer.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return keys[0]
}

// orderAt is a market order that a planner says.
func orderAt(n byte, dueSinceMs uint64) job.Job {
	return job.Job{
		ID: job.OrderID(chain.Hash{n}, 1), Kind: job.Order, Key: chain.Hash{n}, DueSinceMs: dueSinceMs,
		ExpiresMs: dueSinceMs + 300_000, Evidence: job.Evidence{Block: chain.BlockRef{Number: dueSinceMs / 450}},
	}
}
