package demo

import (
	"context"
	"fmt"
	"math"

	dto "github.com/prometheus/client_model/go"
)

// spread is how values spread over the buckets of a histogram: how many there are up to each bound, in seconds, and in
// all.
type spread struct {
	upTo map[float64]uint64
	all  uint64
}

// add takes in the values of another histogram with the same buckets.
func (s *spread) add(h *dto.Histogram) {
	if s.upTo == nil {
		s.upTo = map[float64]uint64{}
	}
	for _, b := range h.GetBucket() {
		s.upTo[b.GetUpperBound()] += b.GetCumulativeCount()
	}
	s.all += h.GetSampleCount()
}

// within is the lowest bound under which at least this share of the values lies: the quantile is at most that. It is
// infinite where values lie above all bounds, and 0 where there is no value.
func (s *spread) within(share float64) float64 {
	if s.all == 0 {
		return 0
	}
	best := math.Inf(1)
	for bound, n := range s.upTo {
		if float64(n) >= share*float64(s.all) {
			best = min(best, bound)
		}
	}
	return best
}

// String is the middle, the 99th percentile and the greatest, each as the bound that it does not exceed.
func (s *spread) String() string {
	if s.all == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, half of them within %s, 99 %% within %s, all within %s",
		s.all, boundText(s.within(0.5)), boundText(s.within(0.99)), boundText(s.within(1)))
}

func boundText(seconds float64) string {
	if math.IsInf(seconds, 1) {
		return "an unknown time"
	}
	return fmt.Sprintf("%.3g ms", seconds*1000)
}

// reportToJob is how long liquidations took from the price report that made them due to the job topic, by the word of
// every planner (PIPE-9).
func (s *Stack) reportToJob(ctx context.Context) (delays spread) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for _, k := range s.Keepers {
		for _, p := range k.Processes {
			if m, err := p.read(ctx); err == nil { // what a process does not show is not counted
				for _, h := range m.histograms["planner_report_to_job_seconds"] {
					delays.add(h)
				}
			}
		}
	}
	return delays
}
