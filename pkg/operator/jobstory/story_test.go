package jobstory_test

import (
	"testing"
	"time"

	"perpkeeper/pkg/operator/jobstory"
	"perpkeeper/pkg/tier"
)

// The turn is that of the age, by windows of 30 s in turn.
func TestTurnOfAnAge(t *testing.T) {
	y := &jobstory.Story{Source: jobstory.Source{Tier: tier.DefaultConfig()}}
	if got := y.Turn(time.Second); got != "-" {
		t.Errorf("alone: %s", got)
	}
	y.Tier.Enabled, y.Tier.Priority = true, 2
	for age, want := range map[time.Duration]string{-time.Second: "-", 0: "1", 29 * time.Second: "1",
		30 * time.Second: "2, ours", 61 * time.Second: "3", 91 * time.Second: "1"} {
		if got := y.Turn(age); got != want {
			t.Errorf("%s: %s, want %s", age, got, want)
		}
	}
}
