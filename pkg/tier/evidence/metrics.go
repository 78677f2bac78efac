package evidence

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution"
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
			"Age of a job in the block in which a tier executed it while no other was suspected.",
			job.ExecutionSeconds(), "tier"),
	}
}

// ExecutedBy counts an execution by a tier. Of a job that was never published here the due time is 0, and its age
// unknown. What is no work of a keeper's is not counted, nor what somebody else did that no planner had published:
// owners call off what is theirs, and withdraw in one transaction. A tier that stood in for one that is suspected went
// before its window, rightly, and its age says nothing.
func (m *Metrics) ExecutedBy(by int, e execution.Execution, dueSinceMs uint64, stoodIn bool) {
	if !e.Work() || by == 0 && dueSinceMs == 0 {
		return
	}
	tier := strconv.Itoa(by)
	m.executed.WithLabelValues(tier, string(e.Kind)).Inc()
	if dueSinceMs > 0 && !stoodIn {
		m.executedAge.WithLabelValues(tier).Observe(float64(e.Block.TimeMs-min(e.Block.TimeMs, dueSinceMs)) / 1000)
	}
}
