package evm

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
)

// Metrics are the counters of all clients of a process.
type Metrics struct {
	seconds   *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	failovers prometheus.Counter
	hedges    *prometheus.CounterVec
	heads     *prometheus.CounterVec
	excluded  *prometheus.GaugeVec
	lag       *prometheus.GaugeVec
	hosts     prometheus.Gauge
	unknown   prometheus.Gauge
	bodies    prometheus.Counter
}

// Where a head came from, as the label of evm_heads_total.
const (
	fromAnnouncement = "announced"
	fromPoll         = "polled"
)

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		seconds: in.Histograms("evm_request_seconds",
			"Time a JSON-RPC request took, answered or not.", prometheus.ExponentialBuckets(0.0005, 2, 15), "method"),
		errors: in.Counters("evm_request_errors_total",
			"JSON-RPC requests that failed, by class: reply (the node said no), timeout, transport, http, "+
				"throttled, malformed, lie (an answer that contradicts itself or what was asked), "+
				"wrong_chain, unproven.", "method", "class"),
		failovers: in.Counter("evm_failovers_total",
			"Times that another endpoint became the first to be asked."),
		hedges: in.Counters("evm_hedges_total",
			"Requests that were sent to a further endpoint because the answer of the one before was late.", "method"),
		heads: in.Counters("evm_heads_total", "New heads, by how they became known: announced, polled.", "via"),
		excluded: in.Gauges("evm_endpoint_excluded",
			"Purposes an endpoint is excluded for, by reason: wrong_chain, lied, contradicted, ahead, suspected, "+
				"stale, slow, unreachable, unreadable, method_disabled, pruned.", "endpoint", "reason"),
		lag: in.Gauges("evm_endpoint_lag_seconds",
			"Chain time from an endpoint's head to the best head, when it last named one.", "endpoint"),
		unknown: in.Gauge("evm_unknown_headers",
			"1 while two hosts agree on a header whose hash this build computes otherwise: the chain has forked "+
				"to what it does not know."),
		bodies: in.Counter("evm_unknown_bodies_total",
			"Blocks whose transactions two hosts show alike and this build cannot hold against their header: they are "+
				"taken unproven."),
		hosts: in.Gauge("evm_hosts",
			"Different hosts among the endpoints that are read from; with 1, what cannot be taken back rests on "+
				"the word of one."),
	}
}
