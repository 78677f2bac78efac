package delayed

import (
	"context"

	"perpkeeper/pkg/job"
)

// Rearming is the name of the kind that takes up a failed job again when it has cooled down.
const Rearming = "rearm"

// Arm is the payload of a re-arming: the arm that ended.
type Arm struct {
	Job string `json:"job"`
	Arm uint32 `json:"arm"`
}

// HandOut publishes a job to the senders again, with the evidence of the newest state, if it is due there; otherwise it
// reports false, and publishes nothing. The same job twice is one job.
type HandOut func(ctx context.Context, j job.Job) (due bool, err error)

// Rearm is the kind that has a job published again once its cooldown is over, unless the chain or the planner has been
// faster.
type Rearm struct{ HandOut HandOut }

// Name implements Kind.
func (Rearm) Name() string { return Rearming }

// Do implements Kind.
func (r Rearm) Do(ctx context.Context, tx Tx, j Job) (any, error) {
	var a Arm
	if err := j.Read(&a); err != nil {
		return nil, err
	}
	again, known, err := tx.Cooled(ctx, a.Job, a.Arm)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return comment("a later arm was born"), nil
	case again.ExpiresMs > 0 && uint64(j.ReadAt.UnixMilli()) > again.ExpiresMs:
		return comment("the venue accepts it no longer"), nil
	}
	if isRequest(again.Kind) {
		waits, err := tx.Waiting(ctx, again.Key)
		if err != nil {
			return nil, err
		}
		if !waits {
			return comment("no longer pending"), nil
		}
	}
	due, err := r.HandOut(ctx, again)
	if err != nil {
		return nil, err
	}
	if !due {
		return comment("not due at this planner; sweeps publish it where it is"), nil
	}
	return comment("handed out"), nil
}

// isRequest tells whether the job's key is that of an order or request.
func isRequest(k job.Kind) bool { return k.Names() == job.OrderKey || k.Names() == job.RequestKey }

// comment is a result in words.
func comment(what string) any {
	return struct {
		Came string `json:"came"`
	}{what}
}
