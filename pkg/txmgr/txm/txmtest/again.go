package txmtest

import (
	"slices"
	"sync"
	"sync/atomic"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// mustFail demands which attempts are to be tried again, and when.
func (b *bench) mustFail(signer chain.Address, want ...txm.Failed) {
	b.Helper()
	got, err := b.Intents.Failed(b.Context(), signer)
	if err != nil || !slices.Equal(got, want) {
		b.Fatalf("to be tried again: %+v, %v; want %+v", got, err, want)
	}
}

// LIQ-10: an attempt that failed for a cause that may pass is followed by another, once, by the owner of the lease; one
// that was given up, or ended otherwise, is not.
func triedAgain(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	fail := func(intent *txm.Intent, o job.Outcome, rest txm.Rest) {
		b.Helper()
		tx := n.mustClaim(intent)
		r := minedAt(tx, tx.Nonce, 0)
		r.OK, r.Outcome = false, o
		b.must(n.Intents.Record(ctx, n.fence, r))
		b.must(n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: r, Rest: rest}))
	}
	queued := b.queue(anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3))
	first := queued[0]
	fail(first, job.Reverted, txm.Rest{RetryAfterMs: 7000})
	fail(queued[1], job.LostRace, txm.Rest{RetryAfterMs: 7000})
	fail(queued[2], job.Reverted, txm.Rest{RetryAfterMs: 7000, GivenUp: true})
	b.mustFail(signer, txm.Failed{Intent: first.ID, AtMs: 7000})
	b.mustBeRefused("retrying a race that was lost", n.Intents.Retry(ctx, n.fence, queued[1].ID), txm.Moved)
	b.mustBeRefused("retrying what was given up", n.Intents.Retry(ctx, n.fence, queued[2].ID), txm.Moved)

	// the lease moves on: of two senders that both know of the failure one stores the next attempt
	former := n.fence
	n = n.succeed()
	b.mustBeLost("the former owner's retry", n.Intents.Retry(ctx, former, first.ID))
	b.mustFail(signer, txm.Failed{Intent: first.ID, AtMs: 7000})
	var stored atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			switch err := n.Intents.Retry(ctx, n.fence, first.ID); {
			case err == nil:
				stored.Add(1)
			case txm.Refused(err) != txm.Moved:
				b.Error(err)
			}
		})
	}
	if group.Wait(); stored.Load() != 1 {
		b.Fatalf("%d attempts follow one that failed", stored.Load())
	}
	b.mustFail(signer)
	again := b.find(first.Job)
	if again.Attempt != 2 || again.Tries != 1 || again.ObservedMs != first.ObservedMs || again.State != txm.Queued {
		b.Errorf("tried again as %+v", again)
	}
	b.say(found(first.Job, 9000), txm.Refreshed) // a planner's newer words reach it
}
