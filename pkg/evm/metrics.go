package evm

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the counters of all clients of a process.
type Metrics struct {
	seconds  *prometheus.HistogramVec
	errors   *prometheus.CounterVec
	excluded *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		seconds: in.Histograms("evm_request_seconds",
			"Time a JSON-RPC request took, answered or not.", prometheus.ExponentialBuckets(0.0005, 2, 15), "method"),
		errors: in.Counters("evm_request_errors_total",
			"JSON-RPC requests that failed, by class; lie: an answer that contradicts itself or what was asked.",
			"method", "class"),
		excluded: in.Gauges("evm_endpoint_excluded",
			"Purposes an endpoint is left out for, by reason (docs/runbooks/endpoints.md).",
			"endpoint", "reason"),
	}
}
