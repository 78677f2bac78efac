package planner

import (
	"testing"
	"testing/synctest"
	"time"
)

// LIQ-1: markets that become volatile are swept within the shorter interval at once, not only after the long one is
// over; calmer ones postpone no sweep.
func TestNervousMarketsHastenTheSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := newSweepTimer(10 * time.Second)
		defer s.Stop()
		<-time.After(time.Second)
		s.hasten(2 * time.Second)
		s.hasten(5 * time.Second)
		<-s.C
		if at := time.Since(start); at != 3*time.Second {
			t.Errorf("swept after %s", at)
		}
		s.start(2 * time.Second)
		<-time.After(time.Second)
		s.hasten(10 * time.Second)
		s.hasten(2 * time.Second)
		<-s.C
		if at := time.Since(start); at != 5*time.Second {
			t.Errorf("swept again after %s", at)
		}
	})
}
