package txmanager

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/job"
)

// LIQ-16, LIQ-17: a step between two bounds of the histogram could only be guessed at by the rules in
// deploy/compose/prometheus.
func TestStepsOfExecutionAreBounds(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	NewMetrics(reg).landed.WithLabelValues(string(job.Liquidation)).Observe(1)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var bounds []float64
	for _, f := range families {
		if f.GetName() == "sender_landed_age_seconds" {
			for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
				bounds = append(bounds, b.GetUpperBound())
			}
		}
	}
	for _, step := range []float64{10, 15, 30, 60} {
		if !slices.Contains(bounds, step) {
			t.Errorf("%v s is no bound of %v", step, bounds)
		}
	}
}
