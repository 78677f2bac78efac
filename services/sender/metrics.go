package sender

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// Metrics are what the sender counts.
type Metrics struct {
	Leases *lease.Metrics

	admissions   *prometheus.CounterVec
	jobs         *prometheus.CounterVec
	waits        *prometheus.CounterVec
	broadcasts   *prometheus.CounterVec
	reorgs       prometheus.Counter
	inFlight     *prometheus.GaugeVec
	queueDepth   *prometheus.GaugeVec
	queueSeconds prometheus.Histogram
	sendAge      *prometheus.HistogramVec
	delay        *prometheus.HistogramVec
}

// NewMetrics registers the sender's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	seconds := prometheus.ExponentialBuckets(0.05, 2, 14) // 50 ms to 7 min
	m := &Metrics{
		Leases: lease.NewMetrics(reg),
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_admissions_total", Help: "Jobs read from the topic, by what became of them: queued, refreshed, in_flight, cooling, misrouted.",
		}, []string{"result"}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_jobs_total", Help: "Arms of jobs that have ended, by kind and outcome.",
		}, []string{"kind", "outcome"}),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_waits_total", Help: "Times a stage told an intent to wait.",
		}, []string{"stage"}),
		broadcasts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_broadcasts_total", Help: "Broadcasts of stored transactions, repetitions included, by the class of the nodes' answer.",
		}, []string{"class"}),
		reorgs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sender_receipts_taken_back_total", Help: "Mined transactions whose block left the chain.",
		}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_in_flight", Help: "Transactions of a signer whose fate is open.",
		}, []string{"signer"}),
		queueDepth: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "worker_queue_depth", Help: "Intents of a signer that wait for their nonce.",
		}, []string{"signer"}),
		queueSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "worker_queue_seconds", Help: "Time from an intent's storing to its claim.", Buckets: seconds,
		}),
		sendAge: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sender_send_age_seconds", Help: "Age of a job, on the chain's clock, at its first broadcast.", Buckets: seconds,
		}, []string{"kind"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sender_execution_delay_seconds", Help: "Age of a job, on the chain's clock, when its transaction was final.", Buckets: seconds,
		}, []string{"kind"}),
	}
	reg.MustRegister(m.admissions, m.jobs, m.waits, m.broadcasts, m.reorgs, m.inFlight, m.queueDepth, m.queueSeconds, m.sendAge, m.delay)
	return m
}

// RegisterMetrics is NewMetrics for a catalogue.
func RegisterMetrics(reg prometheus.Registerer) { NewMetrics(reg) }

// claimed counts the time an intent has waited.
func (m *Metrics) claimed(i txm.Intent) {
	m.queueSeconds.Observe(max(0, time.Since(i.QueuedAt).Seconds()))
}

// forget drops what was said of a signer that is no longer ours.
func (m *Metrics) forget(signer chain.Address) {
	m.inFlight.DeleteLabelValues(signer.Hex())
	m.queueDepth.DeleteLabelValues(signer.Hex())
}
