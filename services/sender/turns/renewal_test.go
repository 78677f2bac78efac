package turns

import (
	"slices"
	"testing"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txmanager"
)

var dip = job.Job{ID: "liquidation:x:1", Kind: job.Liquidation, DueSinceMs: dueSince}

// crowd is the turns of all three keepers, which have stored a job in its first life.
func crowd() (all []*bench) {
	for self := 1; self <= 3; self++ {
		b := newBench(func(c *tier.Config) { c.Priority, c.Peers = self, nil }).head(dueSince)
		b.Published(dip)
		all = append(all, b)
	}
	return all
}

// TIER-9: the word of a renewal comes to the keepers one after the other; whoever has not heard it yet leaves what it
// has stored alone, so that the keeper whose window the new life begins in owns it by itself.
func TestWordOfARenewalComesLate(t *testing.T) {
	all, heard := crowd(), []uint64{300_500, 300_700, 300_900}
	again := dip
	again.DueSinceMs = dueSince + 300_000
	for age := uint64(290_000); age < 330_000; age += 100 {
		var owners []int
		for i, b := range all {
			b.head(dueSince + age)
			if age == heard[i] {
				b.Published(again)
			}
			turn := b.Ask(dip)
			if turn.Mine != (turn.Verdict.Kind == txmanager.Proceed) || turn.Verdict.Kind == txmanager.Drop {
				t.Errorf("at %d ms: %+v", age, turn)
			}
			if turn.Mine {
				owners = append(owners, i+1)
			}
		}
		if len(owners) > 1 || age >= 297_000 && age < heard[0] && len(owners) > 0 {
			t.Errorf("at %d ms it is owned by %v", age, owners)
		}
		if age >= heard[0] && age < 327_000 && !slices.Equal(owners, []int{1}) {
			t.Errorf("at %d ms, of the new life the Master's window, it is owned by %v", age, owners)
		}
	}
}

// TIER-9, TIER-11: what is stored of a life that is over waits for the next one, and ends where no planner publishes
// it: its condition is gone, and it must be in nobody's way.
func TestStoredLifeThatIsOverEnds(t *testing.T) {
	b := newBench().head(dueSince)
	b.Admit(dip)
	turn := b.head(dueSince + 300_000).Ask(dip)
	if turn.Mine || turn.Passed || turn.Verdict.Kind != txmanager.Defer ||
		turn.Verdict.Reason != "it is nobody's until it is renewed" {
		t.Errorf("its life has just ended: %+v", turn)
	}
	turn = b.head(dueSince + 330_000).Ask(dip)
	if turn.Mine || !turn.Passed || turn.Verdict.Outcome != job.DroppedRecovered {
		t.Errorf("no planner publishes it: %+v", turn)
	}
	again := dip
	again.DueSinceMs = dueSince + 300_000
	b.Published(again)
	if turn = b.Ask(dip); !turn.Mine {
		t.Errorf("it is renewed, and 30 s old: %+v", turn)
	}
	order := orderAt(1, dueSince+30_000)
	order.ExpiresMs = dueSince + 900_000
	if turn = b.Ask(order); !turn.Mine {
		t.Errorf("an order that is never renewed: %+v", turn)
	}
}
