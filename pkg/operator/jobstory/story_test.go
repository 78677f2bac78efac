package jobstory

import (
	"testing"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
)

// The turn is that of the age, by windows of 30 s in turn; a job that is to be renewed is nobody's meanwhile.
func TestTurnOfAnAge(t *testing.T) {
	y := &Story{Source: Source{Tier: tier.DefaultConfig()}, dueTimes: map[string][]uint64{}, mortal: map[string]bool{}}
	order, liquidation := Line{Job: "order"}, Line{Job: "liquidation"}
	y.born(job.Job{ID: order.Job, DueSinceMs: 1000, ExpiresMs: 301_000})
	y.born(job.Job{ID: liquidation.Job, DueSinceMs: 1000})
	if got := y.Turn(order, time.Second); got != "-" {
		t.Errorf("alone: %s", got)
	}
	y.Tier.Enabled, y.Tier.Priority = true, 2
	for age, want := range map[time.Duration]string{-time.Second: "-", 0: "1", 29 * time.Second: "1",
		30 * time.Second: "2, ours", 61 * time.Second: "3", 91 * time.Second: "1", 299 * time.Second: "1"} {
		for _, l := range []Line{order, liquidation} {
			if got := y.Turn(l, age); got != want {
				t.Errorf("%s at %s: %s, want %s", l.Job, age, got, want)
			}
		}
	}
	if got := y.Turn(order, 300*time.Second); got != "2, ours" {
		t.Errorf("the order at 300 s: %s", got)
	}
	if got := y.Turn(liquidation, 300*time.Second); got != "nobody until it is renewed" {
		t.Errorf("the liquidation at 300 s: %s", got)
	}
}
