package price

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/metric"
)

// Metrics are the figures of the feed of a process.
type Metrics struct {
	reports  *prometheus.CounterVec
	received *prometheus.CounterVec
	repeated *prometheus.CounterVec
	rejected *prometheus.CounterVec
	released *prometheus.CounterVec
	failures *prometheus.CounterVec
	active   *prometheus.GaugeVec
	up       *prometheus.GaugeVec
	disputed prometheus.Gauge
	emit     prometheus.Histogram
	ages     *ages
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	m := &Metrics{
		reports: in.Counters("price_reports_total", "New price reports emitted, by token.", "token"),
		received: in.Counters("price_source_reports_total",
			"Reports a source gave, whatever became of them.", "source"),
		repeated: in.Counters("price_reports_repeated_total",
			"Reports that were not newer than what the source gave, or the feed emitted, before.", "source"),
		rejected: in.Counters("price_gate_rejections_total",
			"Reports that did not pass when they came, by reason.", "source", "reason"),
		released: in.Counters("price_gate_releases_total",
			"Rejected reports that a later one or another source confirmed, and that passed then.", "source"),
		failures: in.Counters("price_source_failures_total",
			"Times that a price source gave no answer or broke off.", "source"),
		active: in.Gauges("price_source_active",
			"Number of tokens whose prices are this source's at the moment.", "source"),
		up: in.Gauges("price_source_up",
			"1 if the source answers, whether its prices are used or not.", "source"),
		disputed: in.Gauge("price_disputed_tokens",
			"Number of tokens of which no report passes, because sources contradict each other."),
		emit: in.Histogram("price_emit_seconds",
			"From a report being received to it being emitted.", prometheus.ExponentialBuckets(0.0001, 2, 16)),
		ages: &ages{newest: map[chain.Address]uint64{}},
	}
	reg.MustRegister(m.ages)
	return m
}

// prepare makes the figures of a source exist before anything happens.
func (m *Metrics) prepare(source string) {
	for _, vec := range []*prometheus.CounterVec{m.received, m.repeated, m.released, m.failures} {
		vec.WithLabelValues(source)
	}
	for _, reason := range reasons {
		m.rejected.WithLabelValues(source, string(reason))
	}
	m.active.WithLabelValues(source)
	m.up.WithLabelValues(source)
}

func (m *Metrics) emitted(r Report, received, now time.Time) {
	m.reports.WithLabelValues(r.Token.Hex()).Inc()
	m.emit.Observe(now.Sub(received).Seconds())
	m.ages.note(r)
}

var ageDesc = prometheus.NewDesc("price_report_age_seconds", "Age of the newest emitted report of a token, by the "+
	"chain's clock.", []string{"token"}, nil)

// ages is a collector, because an age grows while nothing happens.
type ages struct {
	mu     sync.Mutex
	newest map[chain.Address]uint64   // ms
	clock  func(now time.Time) uint64 // Unix ms; nil = this machine's
}

func (a *ages) setClock(clock func(now time.Time) uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock = clock
}

func (a *ages) note(r Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newest[r.Token] = r.TimeMs
}

// Describe implements prometheus.Collector.
func (a *ages) Describe(descs chan<- *prometheus.Desc) { descs <- ageDesc }

// Collect implements prometheus.Collector.
func (a *ages) Collect(metrics chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	nowMs := now.UnixMilli()
	if a.clock != nil {
		nowMs = int64(a.clock(now))
	}
	for token, ms := range a.newest {
		age := float64(nowMs-int64(ms)) / 1000
		metrics <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, age, token.Hex())
	}
}
