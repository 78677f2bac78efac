package bus

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the bus's counters. One set serves all clients of a process.
type Metrics struct {
	produceTime *prometheus.HistogramVec
	behind      *prometheus.GaugeVec
	gaps        *prometheus.CounterVec
	assigned    *prometheus.GaugeVec
}

// NewMetrics registers the bus's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		produceTime: in.Histograms("bus_produce_seconds",
			"Time from handing over a batch to its acknowledgement.",
			prometheus.ExponentialBuckets(0.0005, 2, 16), "topic"),
		behind: in.Gauges("bus_reader_lag_records",
			"Records from a reader to its partition's end, at the last fetch.", "topic", "partition"),
		gaps: in.Counters("bus_gaps_total",
			"Readers stopped by missing offsets.", "topic"),
		assigned: in.Gauges("bus_group_partitions", "Partitions assigned to this process.", "group"),
	}
}
