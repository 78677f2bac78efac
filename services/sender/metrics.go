package sender

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/pg/retention"
	"perpkeeper/pkg/txmgr/txmanager"
	"perpkeeper/services/sender/preflight"
	"perpkeeper/services/sender/turns"
)

// Metrics are the metrics of the sender.
type Metrics struct {
	Txs       *txmanager.Metrics
	turns     *turns.Metrics
	preflight *preflight.Metrics
	archive   *retention.Metrics

	unreadable *prometheus.CounterVec
	paused     *prometheus.GaugeVec
}

// NewMetrics registers the sender's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		Txs: txmanager.NewMetrics(reg), turns: turns.NewMetrics(reg),
		preflight: preflight.NewMetrics(reg), archive: retention.NewMetrics(reg),
		unreadable: in.Counters("sender_unreadable_records_total",
			"Job and price records passed over because nobody can read them.", "topic"),
		paused: in.Gauges("sender_paused",
			"1 while a signer is paused or cannot sign, or nobody works it though it has jobs.", "signer"),
	}
}

// RegisterMetrics is NewMetrics for a catalogue.
func RegisterMetrics(reg prometheus.Registerer) { NewMetrics(reg) }
