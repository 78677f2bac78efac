package sender

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/secret"
)

// A process whose clock is ten minutes off, either way or now this and now that, does the same as any other. What it
// compares are times of one clock: the chain's with the chain's, the database's with the database's, its own with its
// own.
func TestSkewedClock(t *testing.T) {
	s := newSite(t)
	const off = 10 * time.Minute
	for i, c := range []struct {
		name string
		skew func() time.Duration
	}{
		{"ten minutes ahead", func() time.Duration { return off }},
		{"ten minutes behind", func() time.Duration { return -off }},
		{"jumping", jumping(off)},
	} {
		by, key := s.keeper(i)
		t.Run(c.name, func(t *testing.T) {
			s := s.in(t)
			before := s.nonce(by)
			waiting := s.orderJob(s.marketOrder(100), by)
			s.say(waiting) // before anybody listens: to be read back
			s.sender([]secret.String{key}, func(sn *Sender) {
				// as a wall clock: no monotonic reading
				sn.clock = func() time.Time { return time.Now().Add(c.skew()).Round(0) }
			})
			s.mustEndOnce(waiting, by, before)

			healthy := s.liquidationJob(by)
			s.say(healthy)
			s.eventually("it is looked at again", func(context.Context) bool {
				s.say(healthy)
				return len(s.results(healthy.ID)) > 1
			})
			for _, r := range s.results(healthy.ID) {
				if r.Outcome != job.DroppedRecovered {
					t.Errorf("result %+v", r)
				}
			}
			next := s.orderJob(s.marketOrder(100), by)
			s.say(next)
			s.mustEndOnce(next, by, before+1)
		})
	}
}

// jumping changes sides every few questions.
func jumping(off time.Duration) func() time.Duration {
	var asked atomic.Int64
	return func() time.Duration {
		if asked.Add(1)/64%2 == 0 {
			return off
		}
		return -off
	}
}
