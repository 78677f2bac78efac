package scanner

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
)

// Metrics are the metrics of the scanner.
type Metrics struct {
	headNumber prometheus.Gauge
	headTime   prometheus.Gauge
	headAge    *ageGauge
	clockLead  prometheus.Gauge
	finalized  prometheus.Gauge
	block      prometheus.Gauge
	blocks     prometheus.Counter
	records    *prometheus.CounterVec
	seconds    prometheus.Histogram
	reorgs     prometheus.Histogram
	epoch      prometheus.Gauge
	standingBy prometheus.Gauge
	unverified *prometheus.CounterVec
	lookUps    prometheus.Counter

	unproven     prometheus.Gauge
	corrections  prometheus.Counter
	tooDeep      prometheus.Counter
	halted       prometheus.Gauge
	undecided    prometheus.Gauge
	ranges       prometheus.Counter
	backfillLeft prometheus.Gauge
	backfillETA  prometheus.Gauge
	bodyRanges   prometheus.Counter

	auditTime     prometheus.Gauge
	auditWords    prometheus.Gauge
	auditUnread   prometheus.Gauge
	auditHeld     prometheus.Gauge
	auditFailures prometheus.Counter
}

// newMetrics registers the scanner's metrics.
func newMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	m := &Metrics{
		headNumber: in.Gauge("scanner_head_number", "Number of the newest head seen."),
		headTime: in.Gauge("scanner_head_time_seconds",
			"Time of the newest head seen, as the chain has it, in Unix seconds."),
		headAge: &ageGauge{},
		clockLead: in.Gauge("scanner_chain_clock_lead_seconds",
			"By how much the chain's clock, by which price reports are judged, is ahead of this machine's."),
		finalized: in.Gauge("scanner_finalized_number", "Number of the newest final block seen."),
		block:     in.Gauge("scanner_block_number", "Number of the newest block published to all partitions."),
		blocks: in.Counter("scanner_blocks_published_total",
			"Blocks published to all partitions that lacked them."),
		records: in.Counters("scanner_records_published_total",
			"Records published in blocks and ranges, by kind: log, tx, param, audit; one that stands in every "+
				"partition counts once.", "kind"),
		seconds: in.Histogram("scanner_publish_seconds",
			"Time to read a block's logs and write its batches.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		reorgs: in.Histogram("scanner_reorg_depth_blocks",
			"Blocks taken back by each reorg.", []float64{1, 2, 3, 8, 16, 24, 64, 120, 240, 1000}),
		epoch:      in.Gauge("scanner_epoch", "The epoch under which this scanner last claimed the log topic."),
		standingBy: in.Gauge("scanner_standing_by", "1 while another scanner owns the log topic."),
		unverified: in.Counters("scanner_unverified_blocks_total",
			"Blocks whose logs or transactions could not be proven, by cause: no_receipts (the node serves none), "+
				"wrong_receipts (they do not hash to the root).", "cause"),
		lookUps: in.Counter("scanner_owner_lookups_total",
			"Times the owner of an order or position had to be read from the DataStore."),

		unproven: in.Gauge("scanner_unverified_blocks",
			"Blocks published without proof that have been neither proven nor found wrong since."),
		corrections: in.Counter("scanner_corrections_total",
			"Blocks found to have been published wrong, and published again with everything above them."),
		tooDeep: in.Counter("scanner_corrections_too_deep_total",
			"Blocks found to have been published wrong when readers could no longer undo them: the topic has to "+
				"be written anew."),
		undecided: in.Gauge("scanner_finality_undecided",
			"1 while endpoints do not agree on any final block, so that nothing new is called final."),
		halted: in.Gauge("scanner_halted",
			"1 while the chain contradicts what it had called final, and nothing is published."),
		ranges: in.Counter("scanner_ranges_published_total",
			"Ranges of history published to all partitions that lacked them."),
		backfillLeft: in.Gauge("scanner_backfill_remaining_blocks",
			"Blocks of history that are still to be published in ranges; 0 while none are."),
		backfillETA: in.Gauge("scanner_backfill_eta_seconds",
			"How long the history that is being published in ranges will take, at the pace until now; 0 while "+
				"none is."),
		bodyRanges: in.Counter("scanner_backfill_ranges_by_bodies_total",
			"Ranges of history of which every block was read, because the signers' nonces at old blocks could not "+
				"be had or did not agree."),

		auditTime: in.Gauge("scanner_words_audit_time_seconds",
			"When all words of the DataStore were last compared with the chain, Unix seconds; 0 = not in this "+
				"process."),
		auditWords:  in.Gauge("scanner_words_audited", "Words the last audit has read."),
		auditUnread: in.Gauge("scanner_words_unread", "Words the last audit could not read."),
		auditHeld: in.Gauge("scanner_markets_unaudited",
			"Markets of which the last audit could not read every word."),
		auditFailures: in.Counter("scanner_words_audit_failures_total",
			"Audits that could not read every word."),
	}
	reg.MustRegister(m.headAge)
	return m
}

func (m *Metrics) published(c content, took time.Duration) {
	m.block.Set(float64(c.block.Number))
	m.blocks.Inc()
	m.count(c)
	m.seconds.Observe(took.Seconds())
}

func (m *Metrics) publishedRange(h history) {
	m.block.Set(float64(h.last().Number))
	m.blocks.Add(float64(len(h.refs)))
	for _, c := range h.blocks {
		m.count(c)
	}
}

// count counts the records of a block.
func (m *Metrics) count(c content) {
	m.records.WithLabelValues("log").Add(float64(len(c.logs)))
	m.records.WithLabelValues("tx").Add(float64(len(c.txs)))
	m.records.WithLabelValues("param").Add(float64(len(c.params)))
	m.records.WithLabelValues("audit").Add(float64(len(c.audits)))
}

// audited counts what an audit has read, and the markets that stay without it.
func (m *Metrics) audited(a audit, held int) {
	unread, _ := a.unread()
	m.auditWords.Set(float64(len(a.words) - unread))
	m.auditUnread.Set(float64(unread))
	m.auditHeld.Set(float64(held))
	if unread == 0 {
		m.auditTime.SetToCurrentTime()
	}
}

var headAgeDesc = prometheus.NewDesc("scanner_head_age_seconds", "How long ago the newest head came, by this "+
	"process's clock.", nil, nil)

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
