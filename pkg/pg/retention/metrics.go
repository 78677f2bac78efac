package retention

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the metrics of the archive.
type Metrics struct {
	failures prometheus.Counter
}

// NewMetrics registers the metrics of the archive; a nil Registerer registers them nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		failures: in.Counter("retention_failures_total",
			"Steps of the archive that failed; they are tried again."),
	}
}
