package scanner

import (
	"slices"
	"sync"
	"time"
)

// clockHeads is how many heads the chain's clock rests on. It follows a machine that slept within half of them.
const clockHeads = 31

// chainClock is the chain's time as the newest heads show it: that of a head, and what has passed since it came, by
// this machine's monotonic clock. Of the newest heads the median decides, so that no single one can, neither one that a
// node made up nor one that came late. It runs on when heads stop: what is judged by it does not stop with them. It is
// behind the chain by as long as a head is on its way. It is safe for concurrent use.
type chainClock struct {
	begin time.Time

	mu sync.Mutex
	// of the newest heads, oldest first: the head's time (Unix ms) less what had passed since begin (ms) when it came
	leads []int64
}

func newChainClock() *chainClock { return &chainClock{begin: time.Now()} }

// head notes a head's own time (Unix ms) and when it came.
func (c *chainClock) head(headMs uint64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leads = append(c.leads, int64(headMs)-at.Sub(c.begin).Milliseconds())
	c.leads = c.leads[max(0, len(c.leads)-clockHeads):]
}

// now returns the chain's time (Unix ms) at a moment; 0 before the first head.
func (c *chainClock) now(at time.Time) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.leads) == 0 {
		return 0
	}
	leads := slices.Sorted(slices.Values(c.leads))
	return uint64(max(leads[(len(leads)-1)/2]+at.Sub(c.begin).Milliseconds(), 0))
}
