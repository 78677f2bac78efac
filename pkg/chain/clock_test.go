package chain

import (
	"testing"
	"time"
)

// The clock follows heads, runs 3 s ahead of the newest at most, and goes back only where the newest cannot have been
// true.
func TestClock(t *testing.T) {
	var c Clock
	start := time.Now()
	if c.Now(start) != 0 {
		t.Error("it runs before the first head")
	}
	c.Head(10_000, start)
	for ahead, want := range map[time.Duration]uint64{0: 10_000, time.Second: 11_000, 3 * time.Second: 13_000,
		time.Hour: 13_000, -time.Second: 10_000} {
		if got := c.Now(start.Add(ahead)); got != want {
			t.Errorf("%s after the head: %d, want %d", ahead, got, want)
		}
	}
	c.Head(9_000, start.Add(time.Second)) // a reorg to a lower head
	if got := c.Now(start.Add(time.Second)); got != 11_000 {
		t.Errorf("after a lower head: %d", got)
	}
	c.Head(3_600_000, start.Add(time.Second))
	c.Head(10_500, start.Add(2*time.Second)) // no reorg goes so far
	if got := c.Now(start.Add(2 * time.Second)); got != 10_500 {
		t.Errorf("after a head of the far future: %d", got)
	}
}
