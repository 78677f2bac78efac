package scanner

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the metrics of the scanner.
type Metrics struct {
	headNumber prometheus.Gauge
	headAt     atomic.Pointer[time.Time] // when the newest head came; nil before the first
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
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "scanner_head_age_seconds",
		Help: "How long ago the newest head came, by this machine's clock."},
		func() float64 {
			if age, known := m.headAge(); known {
				return age.Seconds()
			}
			return math.NaN()
		}))
	return m
}

// headAge is how long ago the newest head came, if one has.
func (m *Metrics) headAge() (time.Duration, bool) {
	at := m.headAt.Load()
	if at == nil {
		return 0, false
	}
	return time.Since(*at), true
}
