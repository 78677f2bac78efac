package headtrack

import (
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
)

const nowMs = 1_700_000_000_000

func TestHeadsAreTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(time.Now)
		if _, age := h.Newest(); age < time.Minute {
			t.Error("no head is as good as a very old one")
		}
		next := h.Next()
		h.Set(chain.BlockRef{Number: 1, TimeMs: nowMs}, time.Now())
		<-next
		<-time.After(2 * time.Second)
		if _, age := h.Newest(); age != 2*time.Second {
			t.Errorf("the head came %s ago", age)
		}
		if got := h.Age(nowMs - 1500); got != 1500*time.Millisecond {
			t.Errorf("age %s: when blocks stop, time stops", got)
		}
		if got := h.Age(nowMs + 5); got != 0 {
			t.Errorf("age %s of what is yet to come", got)
		}
	})
}
