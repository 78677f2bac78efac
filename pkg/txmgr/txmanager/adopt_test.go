package txmanager

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

// TIER-8: a transaction that no lease term is known to have broadcast is adopted only when something may be sent; one
// that is public already is broadcast as it stands, and one whose job waits for another reason keeps no nonce from
// landing.
func TestAdoptionAsksTheGate(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Verdict{}, nil })
	if claimed := o.claimOf(t, 1, devKey(t), 1e18); len(claimed) != 1 {
		t.Fatal("nothing was claimed")
	}
	var says Verdict
	node := &talkative{}
	r := renewal{
		recheck: func(context.Context, *Task) (Verdict, error) { return says, nil },
		broadcast: &broadcast{last: map[chain.Hash]sent{}, duty: duty{term: o.term, node: node,
			heads: headsAt(nowMs, time.Now()), store: o.store, metrics: o.metrics, log: zerolog.Nop()}},
	}
	for _, c := range []struct {
		what  string
		says  Verdict
		sends int32 // over all
	}{
		{"the gate is closed", Shut("the state is behind"), 0},
		{"it waits for its price", Wait("premature"), 1},
		{"the gate is closed, and it is public", Shut("the state is behind"), 2},
		{"all is well", Verdict{}, 3},
	} {
		inFlight, err := txstore.NewIntents(o.db).InFlight(t.Context(), o.signer)
		if err != nil || len(inFlight) != 1 {
			t.Fatal(inFlight, err)
		}
		says = c.says
		if err := r.resume(t.Context(), inFlight[0], txm.Observation{}); err != nil {
			t.Fatal(err)
		}
		if got := node.public.Load(); got != c.sends {
			t.Errorf("%s: broadcast %d times, want %d", c.what, got, c.sends)
		}
	}
}
