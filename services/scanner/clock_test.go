package scanner

import (
	"testing"
	"time"
)

// The chain's clock is that of most heads: neither one that was made up moves it, nor this machine's clock, nor the end
// of heads.
func TestChainClock(t *testing.T) {
	c := newChainClock()
	begin, chainMs := c.begin, uint64(1_700_000_000_000) // whatever this machine's clock says
	if got := c.now(begin); got != 0 {
		t.Errorf("without a head it is %d", got)
	}
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	for i := range 100 {
		ms := 450 * i
		switch head := chainMs + uint64(ms); {
		case i > 0 && i%3 == 0:
			c.head(head+3_600_000, at(ms)) // made up
		case i%5 == 0:
			c.head(head, at(ms+2000)) // late
		default:
			c.head(head, at(ms))
		}
	}
	for _, ms := range []int{45_000, 60_000, 3_600_000} {
		if got, want := c.now(at(ms)), chainMs+uint64(ms); got != want {
			t.Errorf("after %d ms it is %d ms off", ms, int64(got)-int64(want))
		}
	}
}
