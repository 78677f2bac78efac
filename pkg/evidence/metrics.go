package evidence

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"perpkeeper/pkg/job"
)

// Metrics count which keepers work (TIER-16).
type Metrics struct {
	executed    *prometheus.CounterVec
	executedAge *prometheus.HistogramVec
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	m := &Metrics{
		executed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_tier_executed_total",
			Help: "Jobs that the chain shows as executed since this process watches, by the tier of the " +
				"transaction's sender; 0 is somebody else.",
		}, []string{"tier", "kind"}),
		executedAge: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sender_tier_execution_age_seconds", Help: "Age of a job in the block in which a tier executed it.",
			Buckets: job.ExecutionSeconds(),
		}, []string{"tier"}),
	}
	return m
}

// ExecutedBy counts an execution by a tier, in a block of a time (ms). Of a job that was never heard of the birth is 0,
// and its age unknown.
func (m *Metrics) ExecutedBy(by int, kind job.Kind, birthMs, atMs uint64) {
	tier := strconv.Itoa(by)
	m.executed.WithLabelValues(tier, string(kind)).Inc()
	if birthMs > 0 {
		m.executedAge.WithLabelValues(tier).Observe(float64(atMs-min(atMs, birthMs)) / 1000)
	}
}
