package txmanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
)

// PendingTxs whose jobs take long to look at anew keep no other from being pressed: a liquidation has room of its own,
// and what finds none is left to the next head. A pending transaction that is pressed is not pressed again.
func TestSlowRechecksHoldNobody(t *testing.T) {
	heads := headtrack.New(time.Now)
	answer, asked := make(chan struct{}), make(chan int64, rechecksAtOnce+2)
	b := &broadcast{rechecks: rechecks{beside: true}}
	c := &confirm{view: view{duty: duty{heads: heads}, broadcast: b}}
	renew := func(_ context.Context, f txm.PendingTx, _ txm.Observation) error {
		asked <- f.Intent.ID
		<-answer
		return errors.New("it took long")
	}
	pending := func(id int64, kind job.Kind) *look {
		return &look{PendingTx: txm.PendingTx{Intent: txm.Intent{ID: id, Job: job.Job{Kind: kind}}}}
	}
	begin := func(id int64, kind job.Kind) {
		if err := c.aside(t.Context(), pending(id, kind), renew); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(rechecksAtOnce) {
		begin(id, job.Order)
		<-asked
	}
	begin(100, job.Liquidation)
	if id := <-asked; id != 100 || !b.rechecks.has(100) {
		t.Errorf("%d was looked at, busy %t", id, b.rechecks.has(100))
	}
	went := make(chan struct{})
	go func() { begin(101, job.Order); close(went) }()
	for n, waits := uint64(1), true; waits; n++ {
		select {
		case <-went:
			waits = false
		default:
			heads.Set(chain.BlockRef{Number: n}, time.Now())
		}
	}
	if len(asked) > 0 || b.rechecks.has(101) {
		t.Error("one more was looked at than there are slots")
	}
	close(answer)
	b.close()
	if err := b.rechecks.err(); err == nil || b.rechecks.err() != nil || b.rechecks.has(100) {
		t.Errorf("what went wrong is not told, once: %v", err)
	}
	begin(102, job.Order)
	if id := <-asked; id != 102 {
		t.Errorf("%d was looked at", id)
	}
	b.close()
}

// What stands before something more urgent makes way for it where it cannot be decided, or not be paid for: what frees
// its nonce costs less, and needs no money of its lane.
func TestWhatCannotGoOnMakesWay(t *testing.T) {
	for _, c := range []struct {
		what string
		err  error
		poor bool
		do   func(renewal, context.Context, txm.PendingTx, txm.Observation) error
	}{
		{"its call comes to an error", errors.New("the node is away"), false, renewal.replace},
		{"the signer cannot pay for it", nil, true, renewal.resume},
	} {
		t.Run(c.what, func(t *testing.T) {
			o := newQueueTest(t, func(job.Job) (Verdict, error) { return Verdict{}, nil })
			if claimed := o.claimOf(t, 1, devKey(t), 1e18); len(claimed) != 1 {
				t.Fatal("nothing was claimed")
			}
			inFlight, err := txstore.NewIntents(o.db).InFlight(t.Context(), o.signer)
			if err != nil || len(inFlight) != 1 {
				t.Fatal(inFlight, err)
			}
			f, node := inFlight[0], &talkative{}
			d := duty{term: o.term, signer: o.signer, node: node, heads: headsAt(nowMs, time.Now()), store: o.store,
				limits: limits{}, turns: alone{}, metrics: o.metrics, log: zerolog.Nop()}
			r := renewal{
				signing: signing{duty: d, key: devKey(t), chainID: 56, market: marketAt(0),
					budget: aBudget(&books{}, "0", "0")},
				recheck: func(context.Context, *Task) (Verdict, error) { return Verdict{}, c.err },
				broadcast: &broadcast{duty: d, last: map[chain.Hash]sent{
					f.Newest().Hash: {class: map[bool]evm.Class{true: evm.PauseSigner, false: evm.Accepted}[c.poor]}}},
				payments: &payments{duty: d, clock: time.Now, until: time.Now().Add(time.Hour)},
			}
			if err := c.do(r, t.Context(), f, txm.Observation{Lane: job.LiquidationLane}); err != nil {
				t.Fatal(err)
			}
			inFlight, err = txstore.NewIntents(o.db).InFlight(t.Context(), o.signer)
			if err != nil || len(inFlight) != 1 || !inFlight[0].Leaving() || node.public.Load() != 1 {
				t.Errorf("it does not make way: %+v, %d broadcasts, %v", inFlight, node.public.Load(), err)
			}
		})
	}
}

// receipts is a node with one receipt.
type receipts struct {
	Node
	of evm.Receipt
}

func (r receipts) Receipt(context.Context, chain.Hash) (*evm.Receipt, error) { return &r.of, nil }

// One endpoint that says what no transaction can have burnt spends none of the day's money: what is noted is no more
// than was signed.
func TestReceiptBurnsNoMoreThanWasSigned(t *testing.T) {
	hash := chain.Hash{1}
	odd := evm.Receipt{Tx: chain.Tx{Hash: hash, Block: 5, GasUsed: 1 << 63, GasPrice: 1 << 63}}
	v := view{duty: duty{node: receipts{of: odd}}, broadcast: &broadcast{}}
	signed := txm.SignedTx{Hash: hash, Gas: 100_000, Cap: txm.Gwei}
	l := &look{PendingTx: txm.PendingTx{Txs: []txm.Tx{{SignedTx: signed}}}}
	v.see(t.Context(), l, tip{latest: 1})
	if r := l.observed.Receipt; l.err != nil || r == nil || r.GasUsed != 100_000 || r.GasPrice != txm.Gwei {
		t.Errorf("noted %+v, %v", r, l.err)
	}
}
