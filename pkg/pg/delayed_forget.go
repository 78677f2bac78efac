package pg

import (
	"context"
	"time"

	"perpkeeper/pkg/delayed"
)

// forgetDelayed leaves reports, of which the newest says where to go on, and the expiry of what is still open: it would
// be noticed as if it were new.
var forgetDelayed = Register("forget delayed jobs", `WITH old AS (
		SELECT d.id FROM keeper.delayed_job d
		WHERE d.status = 'done' AND d.kind = ANY ($1)
			AND d.finished_at < clock_timestamp() - $2::bigint * interval '1 microsecond'
			AND NOT EXISTS (SELECT FROM {state}.request r
				WHERE r.key = decode(substr(d.payload ->> 'key', 3), 'hex')
					AND r.status IN ('Created', 'Updated', 'Frozen') AND r.deleted_at IS NULL)
			AND NOT EXISTS (SELECT FROM {state}.perp_order o
				WHERE o.key = decode(substr(d.payload ->> 'key', 3), 'hex')
					AND o.status IN ('Created', 'Updated', 'Frozen') AND o.deleted_at IS NULL)
		LIMIT $3 FOR UPDATE OF d SKIP LOCKED
	)
	DELETE FROM keeper.delayed_job d USING old WHERE d.id = old.id`)

// forgetAtOnce is how many rows are deleted in one statement at most.
const forgetAtOnce = 1000

// Forget deletes releases and expiries that were done longer ago than keep, and returns how many. What is parked or was
// called off stays, for people. Any number of processes may do it.
func (s Delayed) Forget(ctx context.Context, keep time.Duration) (forgotten int, err error) {
	generation, err := s.db.ActiveGeneration(ctx)
	if err != nil {
		return 0, err
	}
	kinds := []string{delayed.CommissionRelease, delayed.Expiry}
	for n := int64(forgetAtOnce); n == forgetAtOnce; forgotten += int(n) {
		n, err = s.db.Run(ctx, "deleting delayed jobs that were done", forgetDelayed.In(generation), kinds,
			keep.Microseconds(), forgetAtOnce)
		if err != nil {
			return forgotten, err
		}
	}
	return forgotten, nil
}
