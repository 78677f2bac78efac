package txmanager

import (
	"math"
	"testing"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

func marketAt(suggested uint64) *market {
	return &market{known: &txm.Market{Suggested: suggested}, limits: limits{}, heads: headsAt(0, time.Now()), at: 100}
}

// A task whose lane may not pay what nodes ask for is asked nothing else, and people are told; one of a lane that may
// goes on.
func TestWhoMayNotPayWaits(t *testing.T) {
	stage := pays{limits{}, marketAt(2 * txm.Gwei), aBudget(&books{}, "5", "3")}
	for kind, want := range map[job.Kind]Decision{job.Liquidation: Proceed, job.Order: Proceed, job.Deposit: Retry} {
		v, err := stage.run(t.Context(), &Task{Intent: txm.Intent{Job: job.Job{Kind: kind}}})
		if err != nil || v.Kind != want || v.Shown != (want == Retry) {
			t.Errorf("a %s: %+v, %v", kind, v, err)
		}
	}
}

// A task of a lane that had too little left for another one is asked nothing else either, until what was spent is
// counted again.
func TestWhoHasSpentItsMoneyWaits(t *testing.T) {
	money := aBudget(&books{}, "5", "3")
	stage, order := pays{limits{}, marketAt(0), money}, &Task{Intent: txm.Intent{Job: job.Job{Kind: job.Order}}}
	money.lacks(job.OrderLane)
	if v, err := stage.run(t.Context(), order); err != nil || v.Kind != Defer || !v.Shown {
		t.Errorf("an order: %+v, %v", v, err)
	}
	deposit := &Task{Intent: txm.Intent{Job: job.Job{Kind: job.Deposit}}}
	if v, err := stage.run(t.Context(), deposit); err != nil || v.Kind != Proceed {
		t.Errorf("a deposit: %+v, %v", v, err)
	}
	if err := money.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, err := stage.run(t.Context(), order); err != nil || v.Kind != Proceed {
		t.Errorf("an order, counted again: %+v, %v", v, err)
	}
}

// No number is given to what may not pay for the gas it needs, also where its lane might pay the price.
func TestNoNonceForWhoMayNotPay(t *testing.T) {
	o := newQueueTest(t, nil)
	dear := txm.DefaultPolicy().Order.Cap + 1
	if claimed := o.claimAt(t, 2, devKey(t), math.MaxInt64, marketAt(dear)); len(claimed) > 0 {
		t.Errorf("claimed those born at %v", claimed)
	}
	if got := o.outcomes(t); len(got) > 0 || len(o.deferrals) != 2 {
		t.Errorf("ended: %v, waiting %d", got, len(o.deferrals))
	}
}

// What is in flight is pressed for the most urgent task that waits for it, and for none that waits for something else.
func TestWhatWaitsForPending(t *testing.T) {
	held := ""
	p := slots{held: func() string { return held }, waiting: new(waiting)}
	tasks := []*Task{{Intent: txm.Intent{Job: job.Job{Kind: job.Deposit}}},
		{Intent: txm.Intent{Job: job.Job{Kind: job.Adl}}}}
	for _, c := range []struct {
		what      string
		open      bool
		slotsFull bool
		held      string
		want      job.Lane
	}{
		{"they went on", true, false, "", ""},
		{"the gate is closed for no block", false, false, "", ""},
		{"there is no slot", false, true, "", job.LiquidationLane},
		{"they went on again", true, true, "", ""},
		{"transactions do not land", false, false, "the signer's transactions do not land", job.LiquidationLane},
	} {
		p.slotsFull, held = c.slotsFull, c.held
		if p.wait(tasks, c.open); p.waiting.most() != c.want {
			t.Errorf("%s: %q waits", c.what, p.waiting.most())
		}
	}
}
