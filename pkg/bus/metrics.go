package bus

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
)

// Metrics are the bus's counters. One set serves all clients of a process.
type Metrics struct {
	produced      *prometheus.CounterVec
	producedBytes *prometheus.CounterVec
	batches       *prometheus.CounterVec
	produceTime   *prometheus.HistogramVec
	read          *prometheus.CounterVec
	behind        *prometheus.GaugeVec
	gaps          *prometheus.CounterVec
	retries       *prometheus.CounterVec
	generations   *prometheus.CounterVec
	assigned      *prometheus.GaugeVec
	commitErrors  *prometheus.CounterVec
}

// Outcomes of a batch, as the label of bus_batches_total.
const (
	outcomeWritten  = "written"
	outcomeRejected = "rejected" // certainly not written
	outcomeUnknown  = "unknown"
)

// NewMetrics registers the bus's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		produced: in.Counters("bus_produced_records_total",
			"Records written to Kafka and acknowledged by all replicas.", "topic"),
		producedBytes: in.Counters("bus_produced_bytes_total",
			"Bytes of the batches written and acknowledged.", "topic"),
		batches: in.Counters("bus_batches_total",
			"Batches by outcome: written, rejected (certainly not written), unknown.", "topic", "outcome"),
		produceTime: in.Histograms("bus_produce_seconds",
			"Time from handing over a batch to its acknowledgement, tries "+
				"included.", prometheus.ExponentialBuckets(0.0005, 2, 16), "topic"),
		read: in.Counters("bus_read_records_total", "Records delivered by partition readers.", "topic"),
		behind: in.Gauges("bus_reader_lag_records",
			"Records between a reader and the end of its partition, at its last fetch.", "topic", "partition"),
		gaps: in.Counters("bus_gaps_total",
			"Readers stopped because offsets were missing from their partition.", "topic"),
		retries: in.Counters("bus_retries_total", "Requests tried again, by what they were for.", "op"),
		generations: in.Counters("bus_group_generations_total",
			"Group generations this process took part in.", "group"),
		assigned: in.Gauges("bus_group_partitions", "Partitions assigned to this process.", "group"),
		commitErrors: in.Counters("bus_group_commit_errors_total",
			"Dashboard offsets that could not be committed.", "group"),
	}
}
