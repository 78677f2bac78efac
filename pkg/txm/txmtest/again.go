package txmtest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// mustFail demands which arms are to be tried again, and when.
func (b *bench) mustFail(t *testing.T, signer chain.Address, want ...txm.Failed) {
	t.Helper()
	got, err := b.Intents.Failed(t.Context(), signer)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("to be tried again: %+v, %v; want %+v", got, err, want)
	}
}

// LIQ-10: an arm that failed for a cause that may pass is followed by another, once, by the owner of the lease; one
// that was given up, or ended otherwise, is not.
func triedAgain(b *bench) {
	t, ctx := b.t, b.t.Context()
	signer := b.signer(t)
	n := b.node(t, signer)
	fail := func(intent *txm.Intent, o job.Outcome, rest txm.Rest) {
		t.Helper()
		tx := n.mustClaim(t, intent)
		r := minedAt(tx, tx.Nonce, 0)
		r.OK, r.Outcome = false, o
		must(t, n.Intents.Record(ctx, n.fence, r))
		must(t, n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: r, Rest: rest}))
	}
	queued := b.queue(t, anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3))
	first := queued[0]
	fail(first, job.Reverted, txm.Rest{RearmMs: 7000})
	fail(queued[1], job.LostRace, txm.Rest{RearmMs: 7000})
	fail(queued[2], job.Reverted, txm.Rest{RearmMs: 7000, GivenUp: true})
	b.mustFail(t, signer, txm.Failed{Intent: first.ID, AtMs: 7000})
	mustBeRefused(t, "retrying a race that was lost", n.Intents.Retry(ctx, n.fence, queued[1].ID), txm.Moved)
	mustBeRefused(t, "retrying what was given up", n.Intents.Retry(ctx, n.fence, queued[2].ID), txm.Moved)

	// the lease moves on: of two senders that both know of the failure one stores the next arm
	former := n.fence
	n = n.succeed(t)
	mustBeLost(t, "the former owner's retry", n.Intents.Retry(ctx, former, first.ID))
	b.mustFail(t, signer, txm.Failed{Intent: first.ID, AtMs: 7000})
	var stored atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			switch err := n.Intents.Retry(ctx, n.fence, first.ID); {
			case err == nil:
				stored.Add(1)
			case txm.Refused(err) != txm.Moved:
				t.Error(err)
			}
		})
	}
	if group.Wait(); stored.Load() != 1 {
		t.Fatalf("%d arms follow one that failed", stored.Load())
	}
	b.mustFail(t, signer)
	again := b.find(t, first.Job)
	if again.Arm != 2 || again.Tries != 1 || again.SaidMs != first.SaidMs || again.State != txm.Queued {
		t.Errorf("tried again as %+v", again)
	}
	b.say(t, found(first.Job, 9000), txm.Refreshed) // a planner's newer words reach it
}
