package keeperctl

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"perpkeeper/pkg/operator/status"
	"perpkeeper/services/keeperctl/doctor"
)

// askProcesses notes those that are not ready, and what the metrics of those that answer say.
func (s *session) askProcesses(ctx context.Context, state *doctor.State) {
	state.Seen = doctor.Seen{Executed: map[int]float64{}, Ages: map[int][]doctor.AgeCount{}}
	for _, p := range s.Own.Processes {
		if err := askProcess(ctx, p.URL, &state.Seen); err != nil {
			state.Unready = append(state.Unready, doctor.Process{Name: p.Name, Why: err.Error()})
		}
	}
}

// askProcess reports why a process is not ready.
func askProcess(ctx context.Context, address string, seen *doctor.Seen) error {
	ctx, cancel := context.WithTimeout(ctx, status.Patience)
	defer cancel()
	text, code, err := status.Get(ctx, address+"/readyz")
	if err != nil {
		return fmt.Errorf("it does not answer: %w", err)
	}
	if metrics, is, err := status.Get(ctx, address+"/metrics"); err == nil && is == http.StatusOK {
		readMetrics(metrics, seen)
	}
	if code != http.StatusOK {
		return fmt.Errorf("%s", strings.Join(strings.Fields(text), " "))
	}
	return nil
}

// readMetrics adds what the metrics of a process say. Those of one that is not understood say nothing.
func readMetrics(text string, seen *doctor.Seen) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return
	}
	for _, m := range families["evm_request_seconds"].GetMetric() {
		seen.Requests += float64(m.GetHistogram().GetSampleCount())
	}
	for _, m := range families["evm_request_errors_total"].GetMetric() {
		if status.Label(m, "class") == "throttled" {
			seen.Throttled += m.GetCounter().GetValue()
		}
	}
	for _, m := range families["sender_tier_executed_total"].GetMetric() {
		if tier, err := strconv.Atoi(status.Label(m, "tier")); err == nil {
			seen.Executed[tier] += m.GetCounter().GetValue()
		}
	}
	for _, m := range families["sender_tier_execution_age_seconds"].GetMetric() {
		if tier, err := strconv.Atoi(status.Label(m, "tier")); err == nil {
			seen.Ages[tier] = agesOf(m.GetHistogram())
		}
	}
}

// agesOf are the counts at a histogram's bounds, and at last that of all.
func agesOf(h *dto.Histogram) (ages []doctor.AgeCount) {
	const longest = 1 << 62
	for _, b := range h.GetBucket() {
		if age := time.Duration(b.GetUpperBound() * float64(time.Second)); age > 0 {
			ages = append(ages, doctor.AgeCount{Age: age, Count: float64(b.GetCumulativeCount())})
		}
	}
	return append(ages, doctor.AgeCount{Age: longest, Count: float64(h.GetSampleCount())})
}
