package evm

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the counters of all clients of a process.
type Metrics struct {
	seconds      *prometheus.HistogramVec
	errors       *prometheus.CounterVec
	failovers    prometheus.Counter
	hedges       *prometheus.CounterVec
	heads        *prometheus.CounterVec
	excluded     *prometheus.GaugeVec
	lag          *prometheus.GaugeVec
	logsRefusals *prometheus.CounterVec
	hosts        prometheus.Gauge
	unknown      prometheus.Gauge
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
			Name: "evm_request_seconds", Help: "Time a JSON-RPC request took, answered or not.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"method"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evm_request_errors_total",
			Help: "JSON-RPC requests that failed, by class: reply (the node said no), timeout, transport, http, " +
				"throttled, malformed, lie (an answer that " +
				"contradicts itself or what was asked), wrong_chain, unproven.",
		}, []string{"method", "class"}),
		failovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evm_failovers_total", Help: "Times that another endpoint became the first to be asked.",
		}),
		hedges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evm_hedges_total",
			Help: "Requests that were sent to a further endpoint because the answer of the one before was late.",
		}, []string{"method"}),
		heads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evm_heads_total", Help: "New heads, by how they became known: announced, polled.",
		}, []string{"via"}),
		excluded: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "evm_endpoint_excluded",
			Help: "Purposes an endpoint is excluded for, by reason: wrong_chain, lied, contradicted, ahead, " +
				"suspected, stale, slow, unreachable, method_disabled, pruned.",
		}, []string{"endpoint", "reason"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "evm_endpoint_lag_seconds",
			Help: "Chain time from an endpoint's head to the best head, when it last named one.",
		}, []string{"endpoint"}),
		logsRefusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evm_logs_range_refusals_total",
			Help: "eth_getLogs of a range that were not answered with logs, by what follows: shrink, suggested, " +
				"halve, split, disabled, throttled, elsewhere.",
		}, []string{"class"}),
		unknown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "evm_unknown_headers",
			Help: "1 while two hosts agree on a header whose hash this build computes otherwise: the chain has " +
				"forked to what it does not know.",
		}),
		hosts: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "evm_hosts",
			Help: "Different hosts among the endpoints that are read from; with 1, what cannot be taken back rests " +
				"on the word of one.",
		}),
	}
	reg.MustRegister(m.seconds, m.errors, m.failovers, m.hedges, m.heads, m.excluded, m.lag, m.logsRefusals, m.hosts,
		m.unknown)
	return m
}
