package price

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the figures of the feed of a process.
type Metrics struct {
	received *prometheus.CounterVec
	rejected *prometheus.CounterVec
	failures *prometheus.CounterVec
	active   *prometheus.GaugeVec
	up       *prometheus.GaugeVec
	disputed prometheus.Gauge
	ages     *ages
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	m := &Metrics{
		received: in.Counters("price_source_reports_total",
			"Reports a source gave.", "source"),
		rejected: in.Counters("price_gate_rejections_total",
			"Reports that did not pass, by reason.", "source", "reason"),
		failures: in.Counters("price_source_failures_total",
			"Times a source gave no answer or broke off.", "source"),
		active: in.Gauges("price_source_active",
			"Tokens whose prices are this source's now.", "source"),
		up: in.Gauges("price_source_up",
			"1 if the source answers.", "source"),
		disputed: in.Gauge("price_disputed_tokens",
			"Tokens without a report that passes, as sources contradict each other."),
		ages: &ages{newest: map[chain.Address]uint64{}},
	}
	reg.MustRegister(m.ages)
	return m
}

// prepare makes the figures of a source exist before anything happens.
func (m *Metrics) prepare(source string) {
	for _, vec := range []*prometheus.CounterVec{m.received, m.failures} {
		vec.WithLabelValues(source)
	}
	for _, reason := range reasons {
		m.rejected.WithLabelValues(source, string(reason))
	}
	m.active.WithLabelValues(source)
	m.up.WithLabelValues(source)
}

var ageDesc = prometheus.NewDesc("price_report_age_seconds",
	"Age of a token's newest emitted report, by the chain's clock.", []string{"token"}, nil)

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
