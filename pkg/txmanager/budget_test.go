package txmanager

import (
	"context"
	"perpkeeper/pkg/chain"
	"testing"
)

// What is taken counts at once, and nothing goes below nothing.
func TestBudget(t *testing.T) {
	b := &budget{limit: 100, store: ledger(30)}
	if spent, err := b.count(t.Context()); spent != 30 || err != nil {
		t.Fatal(spent, err)
	}
	for i, c := range []struct {
		wei  uint64
		want bool
	}{{71, false}, {50, true}, {21, false}, {20, true}, {1, false}, {0, true}} {
		if got := b.take(c.wei); got != c.want {
			t.Errorf("taking %d (%d): %t", c.wei, i, got)
		}
	}
	if b.giveBack(20); !b.take(20) || b.take(1) {
		t.Error("what was given back cannot be taken once more, or twice")
	}
	b.limit = 10 // less than is spent
	if b.take(1) {
		t.Error("took from an empty budget")
	}
}

type ledger uint64

func (l ledger) Spent(context.Context, chain.Address) (uint64, error) { return uint64(l), nil }
