package preflight

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the metrics of simulated calls.
type Metrics struct {
	gasShort *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		gasShort: in.Counters("sender_gas_short_total",
			"Simulated calls that wanted more gas than a transaction may have. The job is tried again.", "kind"),
	}
}
