package preflight

import (
	"context"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txmgr/txmanager"
)

// Outcome reads the logs of a transaction that succeeded: it may have executed the job, or cancelled or frozen the
// order. No receipt shows why one failed, so the call is made again on the newest state: whoever was first has left it
// without the order or position.
func (r *Checker) Outcome(ctx context.Context, j job.Job, mined evm.Receipt) (job.Outcome, string, error) {
	if !mined.OK {
		return r.postMortem(ctx, j)
	}
	if kindRules[j.Kind].silent {
		return job.Done, "updated", nil // whatever the exchange then said, it has said it
	}
	seen, err := r.decoder().Outcome(mined.Logs, j.Key)
	if err != nil {
		return "", "", err
	}
	switch seen.Result {
	case gmx.Executed, gmx.Liquidated:
		return job.Done, string(seen.Result), nil
	case gmx.Cancelled:
		if _, is := j.Kind.Cancels(); is {
			return job.Done, string(seen.Result), nil
		}
		return job.CancelledByVenue, causeOf(seen), nil
	case gmx.Frozen:
		return job.FrozenByVenue, causeOf(seen), nil
	default:
		return job.Reverted, "the transaction succeeded, and none of its logs is about the job", nil
	}
}

// Settlement is what a transaction that succeeded came to for a position's owner (LIQ-11); nil where it did nothing to
// one.
func (r *Checker) Settlement(j job.Job, mined evm.Receipt) (*job.Settlement, error) {
	return r.decoder().Settlement(mined.Logs, j)
}

// decoder reads what mined transactions have done.
func (r *Checker) decoder() *gmx.Decoder { return gmx.NewDecoder(r.venue.EventEmitters()...) }

// causeOf is the text the venue gave, or the custom error in its place.
func causeOf(seen gmx.Outcome) string {
	if seen.Reason != "" || len(seen.ReasonBytes) == 0 {
		return seen.Reason
	}
	return seen.Cause().Error()
}

// postMortem explains a transaction that failed. It returns an error only when nobody could be asked.
func (r *Checker) postMortem(ctx context.Context, j job.Job) (job.Outcome, string, error) {
	call, _, v := r.prepare(j, terms{window: perp.Window{}}, 0)
	if v.Kind != txmanager.Proceed {
		return job.Reverted, "cause unknown: " + v.Reason, nil
	}
	call.Gas = gmx.MaxGas // whatever it had, now the cause is asked for
	result, err := r.simulate(ctx, r.Node, j, call)
	v = result.verdict
	switch {
	case err != nil:
		return "", "", err
	case v.Kind == txmanager.Proceed:
		return job.Reverted, "cause unknown: the same call would succeed now", nil
	case v.Outcome == job.LostRace &&
		!r.second.confirmed(ctx, result, func(ctx context.Context, other simulator) (callResult, error) {
			return r.simulate(ctx, other, j, call)
		}):
		return job.Reverted, "cause unknown: one endpoint says " + v.Reason + ", and no other does", nil
	case v.Outcome == job.LostRace:
		return job.LostRace, v.Reason, nil
	}
	return job.Reverted, v.Reason, nil
}
