package scanner

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/service/metric"
)

// Metrics are the metrics of the scanner.
type Metrics struct {
	headNumber prometheus.Gauge
	headAge    *ageGauge
	block      prometheus.Gauge
	standingBy prometheus.Gauge

	unproven     prometheus.Gauge
	halted       prometheus.Gauge
	backfillLeft prometheus.Gauge

	auditTime prometheus.Gauge
}

// newMetrics registers the scanner's metrics.
func newMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	m := &Metrics{
		headNumber: in.Gauge("scanner_head_number",
			"Newest head seen."),
		headAge: &ageGauge{},
		block: in.Gauge("scanner_block_number",
			"Newest block published to all partitions."),
		standingBy: in.Gauge("scanner_standing_by", "1 while another scanner owns the log topic."),

		unproven: in.Gauge("scanner_unproven_block",
			"Block that waits for receipts that prove it; 0 while none does."),
		halted: in.Gauge("scanner_halted",
			"1 while the chain contradicts a final block, and nothing is published."),
		backfillLeft: in.Gauge("scanner_backfill_remaining_blocks",
			"Blocks of history still to be published in ranges."),

		auditTime: in.Gauge("scanner_words_audit_time_seconds",
			"When all parameters were last compared with the chain, Unix seconds; 0 = not in this process."),
	}
	reg.MustRegister(m.headAge)
	return m
}

var headAgeDesc = prometheus.NewDesc("scanner_head_age_seconds",
	"How long ago the newest head came, by this machine's clock.", nil, nil)

// ageGauge is a collector, because an age grows while nothing happens. There is none before the first reset.
type ageGauge struct {
	mu    sync.Mutex
	since time.Time
}

func (g *ageGauge) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = time.Now()
}

// age is the time since the last reset, if there was one.
func (g *ageGauge) age() (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.since), !g.since.IsZero()
}

// Describe implements prometheus.Collector.
func (g *ageGauge) Describe(descs chan<- *prometheus.Desc) { descs <- headAgeDesc }

// Collect implements prometheus.Collector.
func (g *ageGauge) Collect(metrics chan<- prometheus.Metric) {
	if age, known := g.age(); known {
		metrics <- prometheus.MustNewConstMetric(headAgeDesc, prometheus.GaugeValue, age.Seconds())
	}
}
