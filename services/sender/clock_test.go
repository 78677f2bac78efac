package sender

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/secret"
)

// A process whose clock jumps by ten minutes, either way, does the same as any other. What it compares are times of one
// clock: the chain's with the chain's, the database's with the database's, its own with its own.
func TestSkewedClock(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	by, key := s.keeper(0)
	before, asked := s.nonce(by), atomic.Int64{}
	waiting := s.orderJob(s.marketOrder(100), by)
	s.say(waiting) // before anybody listens: to be read back
	s.sender([]secret.String{key}, func(sn *Sender) {
		sn.clock = func() time.Time { // as a wall clock, without a monotonic reading, that changes sides now and then
			off := 10 * time.Minute
			if asked.Add(1)/64%2 == 0 {
				off = -off
			}
			return time.Now().Add(off).Round(0)
		}
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
	s.mustExecute(by, before+1)
}
