package txmanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// books are what a signer has spent, earned and left, by hand.
type books struct {
	txm.Store
	Node
	spent, earned txm.ByLane
	balance       string // BNB; empty for nobody who says it
	asked         int    // times what was earned was asked for
}

func (b *books) Spent(context.Context, chain.Address) (txm.ByLane, error) { return b.spent, nil }

func (b *books) Earned(context.Context, chain.Address) (txm.ByLane, error) {
	b.asked++
	return b.earned, nil
}

func (b *books) Balance(context.Context, chain.Address) (chain.Uint, error) {
	if b.balance == "" {
		return chain.Uint{}, errors.New("away")
	}
	return txm.MustBNB(b.balance).Wei(), nil
}

// aBudget is one of a day, in BNB, whose reserve is for liquidations.
func aBudget(b *books, day, reserve string) *budget {
	return &budget{
		limit: txm.Budget{Day: txm.MustBNB(day), Reserve: txm.MustBNB(reserve)}, clock: time.Now,
		duty: duty{store: b, node: b, metrics: NewMetrics(prometheus.NewRegistry()), log: zerolog.Nop()},
	}
}

func lane(l job.Lane, bnb string) txm.ByLane { return txm.ByLane{l: txm.MustBNB(bnb).Wei()} }

// What is taken counts at once, what is given back may be taken again, and nothing goes below nothing. The reserve is
// the liquidations'.
func TestBudget(t *testing.T) {
	const milli = 1e15
	b := aBudget(&books{spent: lane(job.OrderLane, "0.03")}, "0.15", "0.05")
	if err := b.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		lane  job.Lane
		milli uint64
		want  bool
	}{{job.OrderLane, 71, false}, {job.OrderLane, 50, true}, {job.MaintenanceLane, 21, false},
		{job.MaintenanceLane, 20, true}, {job.OrderLane, 1, false}, {job.OrderLane, 0, true},
		{job.LiquidationLane, 51, false}, {job.LiquidationLane, 50, true}, {job.LiquidationLane, 1, false}} {
		if got := b.take(c.lane, c.milli*milli); got != c.want {
			t.Errorf("taking %d for the lane %s (%d): %t", c.milli, c.lane, i, got)
		}
	}
	b.giveBack(lane(job.LiquidationLane, "0.02"))
	if !b.take(job.LiquidationLane, 20*milli) || b.take(job.LiquidationLane, milli) {
		t.Error("what was given back cannot be taken once more, or twice")
	}
	b.giveBack(lane(job.OrderLane, "900"))
	if b.take(job.OrderLane, 101*milli) {
		t.Error("more was given back than there is")
	}
}

// Fees that were booked are money again. They and the balance are asked for now and then, and a balance that nobody
// knows stops nothing.
func TestBudgetCountsFees(t *testing.T) {
	at := time.Now()
	told := &books{spent: lane(job.OrderLane, "6"), earned: lane(job.OrderLane, "5"), balance: "24"}
	b := aBudget(told, "2", "1")
	b.clock = func() time.Time { return at }
	if err := b.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.take(job.OrderLane, 1) || !b.take(job.LiquidationLane, 1e18) {
		t.Error("six were spent and five earned: one is left, for liquidations")
	}
	signer := b.signer.Hex()
	if used := testutil.ToFloat64(b.metrics.budgetUsed.WithLabelValues(signer, "order")); used != 1 {
		t.Errorf("orders have spent %g of their money", used)
	}
	if used := testutil.ToFloat64(b.metrics.budgetUsed.WithLabelValues(signer, "liquidation")); used != 0.5 {
		t.Errorf("liquidations may spend %g less", used)
	}
	if bnb, seconds := testutil.ToFloat64(b.metrics.balances.WithLabelValues(signer)),
		testutil.ToFloat64(b.metrics.lasts.WithLabelValues(signer)); bnb != 24 || seconds != 24*24*60*60 {
		t.Errorf("%g BNB for %g seconds at one a day", bnb, seconds)
	}
	for _, later := range []time.Duration{time.Second, fundsFresh, time.Second} {
		at = at.Add(later)
		told.balance = ""
		if err := b.count(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if told.asked != 2 {
		t.Errorf("fees were summed up %d times, want 2", told.asked)
	}
}
