package sender

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"perpkeeper/pkg/retention"
	"perpkeeper/pkg/txmanager"
	"perpkeeper/services/sender/preflight"
	"perpkeeper/services/sender/turns"
)

// Metrics are what the sender counts.
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
	f := promauto.With(reg)
	m := &Metrics{
		Txs: txmanager.NewMetrics(reg), turns: turns.NewMetrics(reg),
		preflight: preflight.NewMetrics(reg), archive: retention.NewMetrics(reg),
		admissions: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_admissions_total",
			Help: "Jobs read from the topic, by what became of them: queued, refreshed, in_flight, cooling, misrouted.",
		}, []string{"result"}),
		unreadable: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_unreadable_records_total",
			Help: "Records of the job and price topics that nobody can read and that were passed over; those read " +
				"again at a start count again.",
		}, []string{"topic"}),
		paused: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_paused",
			Help: "1 while a signer of this process is paused: it claims nothing new until an operator resumes it.",
		}, []string{"signer"}),
	}
	return m
}

// RegisterMetrics is NewMetrics for a catalogue.
func RegisterMetrics(reg prometheus.Registerer) { NewMetrics(reg) }

// gauge is a yes or no as metrics have it.
func gauge(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
