package planner

import (
	"slices"

	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/liquidation"
)

// Metrics are the metrics of the planner.
type Metrics struct {
	liveJobs *prometheus.GaugeVec
	overdue  *overdue
	open     *prometheus.GaugeVec
	tiers    *prometheus.GaugeVec
	block    prometheus.Gauge
	skew     prometheus.Gauge
	mode     prometheus.Gauge
	missed   prometheus.Counter
	expired  *prometheus.CounterVec
	renewed  *prometheus.CounterVec
	unpriced prometheus.Gauge
	ticks    prometheus.Histogram
	received prometheus.Histogram
}

// NewMetrics registers the planner's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	seconds := func(name, help string, objectives ...float64) prometheus.Histogram {
		bounds := append(prometheus.ExponentialBuckets(1e-5, 2, 22), objectives...)
		slices.Sort(bounds)
		return in.Histogram(name, help, bounds)
	}
	m := &Metrics{
		overdue: newOverdue(),
		liveJobs: in.Gauges("planner_jobs_live",
			"Jobs due at the last pass.", "kind"),
		open: in.Gauges("planner_open",
			"Open positions, orders and requests of this planner.", "what"),
		tiers: in.Gauges("planner_positions",
			"Positions by risk at the last sweep: watch below 200 % of the required collateral, armed "+
				"below 110 %, fire = to be liquidated.", "tier"),
		block: in.Gauge("planner_block",
			"Block of the last pass."),
		skew: in.Gauge("planner_partition_skew_blocks",
			"Blocks that the foremost partition is ahead of the watermark."),
		mode: in.Gauge("planner_mode",
			"Volatility: 0 normal, 1 volatile (5 % within the window), 2 extreme (10 %)."),
		missed: in.Counter("planner_index_miss_total",
			"Due positions and limit swaps that a sweep found and the index had missed. Must be 0."),
		expired: in.Counters("planner_expired_total",
			"Market orders and requests that expired before any keeper executed them.", "kind"),
		renewed: in.Counters("planner_jobs_renewed_total",
			"Times a job was renewed, as its condition held for 300 s and nobody executed it.", "kind"),
		unpriced: in.Gauge("planner_unpriced_tokens",
			"Tokens of enabled markets without any price report: nothing of these markets is executed."),
		ticks: seconds("planner_tick_seconds",
			"Time from a price report's arrival to the candidates it makes, by market whose price moved.",
			0.5), // a bound, because none may wait for longer while partitions change hands
		// LIQ-16: detection.
		received: seconds("planner_received_to_job_seconds",
			"Time from the arrival of a price report in this keeper to its liquidation standing on the job topic.",
			0.1), // a bound, so that rules count exactly what took longer
	}
	reg.MustRegister(m.overdue)
	return m
}

// RegisterMetrics registers everything this process counts, for the catalogue.
func RegisterMetrics(reg prometheus.Registerer) {
	NewMetrics(reg)
	registerDelayed(reg)
}

// passOver logs where a record is that nobody can read.
func passOver(log zerolog.Logger) func(bus.Record, error) {
	return func(r bus.Record, why error) {
		log.Error().Err(why).Int64("offset", r.Offset).Msg("passing over a price record that nobody can read")
	}
}

// passed notes a pass over everything.
func (m *Metrics) passed(b *book, live map[job.Kind]int) {
	m.block.Set(float64(b.block.Number))
	positions, orders, requests := b.count()
	m.open.WithLabelValues("positions").Set(float64(positions))
	m.open.WithLabelValues("orders").Set(float64(orders))
	m.open.WithLabelValues("requests").Set(float64(requests))
	for _, kind := range job.Kinds() {
		m.liveJobs.WithLabelValues(string(kind)).Set(float64(live[kind]))
	}
}

func (m *Metrics) ticked(took time.Duration) { m.ticks.Observe(took.Seconds()) }

func (m *Metrics) swept(s liquidation.Swept) {
	m.tiers.WithLabelValues("watch").Set(float64(s.Watch))
	m.tiers.WithLabelValues("armed").Set(float64(s.Armed))
	m.tiers.WithLabelValues("fire").Set(float64(len(s.Liquidatable)))
}

// madeDue notes that a new job which a report made due stands on the topic.
func (m *Metrics) madeDue(r price.Report) {
	now := uint64(time.Now().UnixMilli())
	m.received.Observe(float64(now-min(now, r.ReceivedMs)) / 1000)
}
