package evm

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the counters of all clients of a process.
type Metrics struct {
	seconds   *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	failovers prometheus.Counter
	heads     *prometheus.CounterVec
}

// Where a head came from, as the label of evm_heads_total.
const (
	fromAnnouncement = "announced"
	fromPoll         = "polled"
)

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "evm_request_seconds", Help: "Time a JSON-RPC request took, answered or not.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"method"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evm_request_errors_total",
			Help: "JSON-RPC requests that failed, by class: reply (the node said no), timeout, transport, http, malformed, wrong_chain, unproven.",
		}, []string{"method", "class"}),
		failovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evm_failovers_total", Help: "Times that reads moved to another endpoint.",
		}),
		heads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evm_heads_total", Help: "New heads, by how they became known: announced, polled.",
		}, []string{"via"}),
	}
	reg.MustRegister(m.seconds, m.errors, m.failovers, m.heads)
	return m
}
