package demo

import (
	"testing"

	"perpkeeper/pkg/job"
)

// Whoever adds a kind of job and forgets what a loser of it costs is told here.
func TestEveryKindHasItsLossRatio(t *testing.T) {
	for _, kind := range job.Kinds() {
		if lossRatios[kind] == 0 {
			t.Errorf("%s has no loss ratio", kind)
		}
	}
	if len(lossRatios) != len(job.Kinds()) {
		t.Errorf("%d loss ratios of %d kinds", len(lossRatios), len(job.Kinds()))
	}
}
