package sender

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
	"perpkeeper/pkg/retention"
	"perpkeeper/pkg/txmanager"
	"perpkeeper/services/sender/preflight"
	"perpkeeper/services/sender/turns"
)

// Metrics are the metrics of the sender.
type Metrics struct {
	Txs       *txmanager.Metrics
	turns     *turns.Metrics
	preflight *preflight.Metrics
	archive   *retention.Metrics

	admissions *prometheus.CounterVec
	unreadable *prometheus.CounterVec
	paused     *prometheus.GaugeVec
}

// NewMetrics registers the sender's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		Txs: txmanager.NewMetrics(reg), turns: turns.NewMetrics(reg),
		preflight: preflight.NewMetrics(reg), archive: retention.NewMetrics(reg),
		admissions: in.Counters("sender_admissions_total",
			"Jobs read from the topic, by what became of them: queued, refreshed, in_flight, cooling, "+
				"misrouted.", "result"),
		unreadable: in.Counters("sender_unreadable_records_total",
			"Records of the job and price topics that nobody can read and that were passed over; those read again "+
				"at a start count again.", "topic"),
		paused: in.Gauges("sender_paused",
			"1 while a signer of this process is paused: it claims nothing new until an operator resumes "+
				"it.", "signer"),
	}
}

// RegisterMetrics is NewMetrics for a catalogue.
func RegisterMetrics(reg prometheus.Registerer) { NewMetrics(reg) }
