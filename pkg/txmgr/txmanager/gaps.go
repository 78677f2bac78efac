package txmanager

import (
	"context"

	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
)

// gapPatience is how many blocks a gap may wait for a job.
const gapPatience = 2

// gaps watches for released numbers that keep those above them from being mined. It is used by one goroutine.
type gaps struct {
	heads *headtrack.Tracker
	fill  func(ctx context.Context, n uint64) error
	since map[uint64]uint64 // the head at which a number was first seen to be in the way
}

// pass fills the numbers that pending transactions above them have waited for long enough, and returns whether it tried
// to: the cursor is then old.
func (g gaps) pass(ctx context.Context, released []uint64, inFlight []txm.PendingTx) (tried bool, err error) {
	var highest uint64
	for _, f := range inFlight {
		highest = max(highest, f.Intent.Nonce)
	}
	head, _ := g.heads.Newest()
	for _, n := range released {
		first, seen := g.since[n]
		switch {
		case n > highest:
			delete(g.since, n)
		case !seen:
			g.since[n] = head.Number
		case head.Number >= first+gapPatience:
			delete(g.since, n)
			if err := g.fill(ctx, n); err != nil {
				return true, err
			}
			tried = true
		}
	}
	return tried, nil
}
