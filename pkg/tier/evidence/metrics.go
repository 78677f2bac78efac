package evidence

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/service/metric"
)

// Metrics count which keepers work (TIER-16).
type Metrics struct {
	executed    *prometheus.CounterVec
	executedAge *prometheus.HistogramVec
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		executed: in.Counters("sender_tier_executed_total",
			"Jobs executed on the chain, by the tier of the transaction's sender; 0 is somebody else.", "tier", "kind"),
		executedAge: in.Histograms("sender_tier_execution_age_seconds",
			"Age of a job in the block in which a tier executed it.", job.ExecutionSeconds(), "tier"),
	}
}

// ExecutedBy counts an execution by a tier, in a block of a time (ms). Of a job that was never published here the birth
// is 0, and its age unknown.
func (m *Metrics) ExecutedBy(by int, kind job.Kind, birthMs, atMs uint64) {
	tier := strconv.Itoa(by)
	m.executed.WithLabelValues(tier, string(kind)).Inc()
	if birthMs > 0 {
		m.executedAge.WithLabelValues(tier).Observe(float64(atMs-min(atMs, birthMs)) / 1000)
	}
}
