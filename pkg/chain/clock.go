package chain

import "time"

// maxLead is by how much the clock may run ahead of the newest head: when heads stop, time stops.
const maxLead = 3 * time.Second

// longestReorg is more time than any reorg takes back. A time that is followed by one so much older was never the
// chain's: the node had made it up.
const longestReorg = time.Minute

// Clock is the chain's time as one keeper knows it: that of the newest head, and for a moment what has passed since it
// arrived. The zero Clock stands at zero. It is for one goroutine at a time.
type Clock struct {
	head    uint64 // Unix ms, of the newest block
	arrived time.Time
}

// Head notes a head's own time (Unix ms) and when it arrived here; arrived must carry a monotonic reading. A head that
// is not newer, as after a reorg, changes nothing: time does not go back, but from where it cannot have been.
func (c *Clock) Head(headMs uint64, arrived time.Time) {
	if headMs > c.head || Impossible(c.head, headMs) {
		c.head, c.arrived = headMs, arrived
	}
}

// Impossible reports whether a time (Unix ms) cannot have been the chain's, judged by a later reading of the clock.
func Impossible(thenMs, nowMs uint64) bool {
	return thenMs > nowMs && thenMs-nowMs > uint64(longestReorg.Milliseconds())
}

// Now returns the chain's time (Unix ms) at a moment of this machine's monotonic clock; zero before the first head.
func (c *Clock) Now(at time.Time) uint64 {
	if c.head == 0 {
		return 0
	}
	lead := min(max(at.Sub(c.arrived), 0), maxLead)
	return c.head + uint64(lead.Milliseconds())
}
