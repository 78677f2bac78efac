package planner

import (
	"slices"

	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/liquidation"
	"perpkeeper/pkg/metric"
	"perpkeeper/pkg/price"
)

// Metrics are the metrics of the planner.
type Metrics struct {
	published *prometheus.CounterVec
	liveJobs  *prometheus.GaugeVec
	overdue   *overdue
	open      *prometheus.GaugeVec
	tiers     *prometheus.GaugeVec
	block     prometheus.Gauge
	skew      prometheus.Gauge
	mode      prometheus.Gauge
	missed    prometheus.Counter
	expired   *prometheus.CounterVec
	reborn    *prometheus.CounterVec
	damaged   prometheus.Counter
	unpriced  prometheus.Gauge
	passes    prometheus.Histogram
	ticks     prometheus.Histogram
	sweeps    prometheus.Histogram
	reported  prometheus.Histogram
	received  prometheus.Histogram
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
		published: in.Counters("planner_jobs_published_total",
			"Jobs written to the job topic, repetitions at sweeps included.", "kind"),
		overdue:  newOverdue(),
		liveJobs: in.Gauges("planner_jobs_live", "Jobs that are due at the last pass.", "kind"),
		open: in.Gauges("planner_open",
			"Open positions, orders and requests of this planner's shards.", "what"),
		tiers: in.Gauges("planner_positions",
			"Positions by risk at the last sweep: watch below 200 % of the required collateral, armed below 110 "+
				"%, fire = to be liquidated.", "tier"),
		block: in.Gauge("planner_block", "Number of the block the last pass was made on."),
		skew: in.Gauge("planner_partition_skew_blocks",
			"By how many blocks the foremost partition is ahead of the watermark."),
		mode: in.Gauge("planner_mode",
			"How volatile the markets are: 0 normal, 1 volatile (5 % within the window), 2 extreme (10 %)."),
		missed: in.Counter("planner_index_miss_total",
			"Liquidatable positions and limit swaps in reach that a sweep found and the index had missed. Must be "+
				"0."),
		expired: in.Counters("planner_expired_total",
			"Market orders and requests that expired in the venue's eyes before any keeper had executed "+
				"them.", "kind"),
		reborn: in.Counters("planner_jobs_reborn_total",
			"Jobs whose condition held for 300 s without a break and that no keeper executed, each time they are "+
				"born again.", "kind"),
		damaged: in.Counter("planner_unreadable_prices_total",
			"Records of the price topic that nobody can read and that were passed over; those read again at a "+
				"start count again."),
		unpriced: in.Gauge("planner_unpriced_tokens",
			"Tokens that a market needs which is not disabled, and of which no price report has come: no source "+
				"names them, and nothing of their markets is executed."),
		passes: seconds("planner_pass_seconds", "Computing time of the slices of one pass over all markets "+
			"through the index."),
		ticks: seconds("planner_tick_seconds", "Time from a price report's arrival in this process to the "+
			"candidates it makes, for each market whose price moved.",
			0.5), // a bound, because none may wait for longer while partitions change hands
		sweeps: seconds("planner_sweep_seconds", "Time of one exact judgement of every position."),
		reported: seconds("planner_report_to_job_seconds", "Time from a price report's own time to the liquidation "+
			"it makes due standing on the job topic; "+
			"whole seconds of the source count. What a change of the state makes due is not counted."),
		// LIQ-16: detection.
		received: seconds("planner_received_to_job_seconds", "Time from this keeper's receipt of a price report to "+
			"the liquidation it makes due "+
			"standing on the job topic.", 0.1), // a bound, so that rules count exactly what took longer
	}
	reg.MustRegister(m.overdue)
	return m
}

// RegisterMetrics registers everything this process counts, for the catalogue.
func RegisterMetrics(reg prometheus.Registerer) {
	NewMetrics(reg)
	registerDelayed(reg)
}

// passOver counts a record that nobody can read, and logs where it is.
func (m *Metrics) passOver(log zerolog.Logger) func(bus.Record, error) {
	return func(r bus.Record, why error) {
		m.damaged.Inc()
		log.Error().Err(why).Int64("offset", r.Offset).Msg("passing over a price record that nobody can read")
	}
}

// passed notes a pass over everything.
func (m *Metrics) passed(b *book, live map[job.Kind]int, took time.Duration) {
	m.passes.Observe(took.Seconds())
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

func (m *Metrics) swept(s liquidation.Swept, took time.Duration) {
	m.sweeps.Observe(took.Seconds())
	m.tiers.WithLabelValues("watch").Set(float64(s.Watch))
	m.tiers.WithLabelValues("armed").Set(float64(s.Armed))
	m.tiers.WithLabelValues("fire").Set(float64(len(s.Liquidatable)))
}

// announced notes a job that stands on the topic.
func (m *Metrics) announced(j job.Job) { m.published.WithLabelValues(string(j.Kind)).Inc() }

// madeDue notes that a new job which a report made due stands on the topic.
func (m *Metrics) madeDue(r price.Report) {
	now := uint64(time.Now().UnixMilli())
	m.reported.Observe(float64(now-min(now, r.TimeMs)) / 1000)
	m.received.Observe(float64(now-min(now, r.ReceivedMs)) / 1000)
}
