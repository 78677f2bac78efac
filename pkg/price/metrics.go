package price

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
)

// Metrics are the figures of the feeds of a process.
type Metrics struct {
	reports  *prometheus.CounterVec
	refused  prometheus.Counter
	repeated prometheus.Counter
	failures prometheus.Counter
	ages     *ages
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "price_reports_total", Help: "New price reports emitted, by token.",
		}, []string{"token"}),
		refused:  counter("price_reports_refused_total", "Reports refused because a price, the token or the time made no sense."),
		repeated: counter("price_reports_repeated_total", "Reports that were not newer than what was emitted before."),
		failures: counter("price_request_failures_total", "Times that a price source gave no answer."),
		ages:     &ages{newest: map[chain.Address]uint64{}},
	}
	reg.MustRegister(m.reports, m.refused, m.repeated, m.failures, m.ages)
	return m
}

func (m *Metrics) emitted(r Report) {
	m.reports.WithLabelValues(r.Token.Hex()).Inc()
	m.ages.note(r)
}

var ageDesc = prometheus.NewDesc("price_age_seconds", "Age of the newest emitted report of a token, by this machine's clock.", []string{"token"}, nil)

// ages is a collector, because an age grows while nothing happens.
type ages struct {
	mu     sync.Mutex
	newest map[chain.Address]uint64 // ms
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
	for token, ms := range a.newest {
		age := time.Since(time.UnixMilli(int64(ms))).Seconds()
		metrics <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, age, token.Hex())
	}
}
