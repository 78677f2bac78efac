package txmanager

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/ttl"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// Metrics are the metrics of a manager.
type Metrics struct {
	Leases *lease.Metrics
	queues *ttl.Metrics // of retries
	attemptMetrics
	sendMetrics
	pendingMetrics
	moneyMetrics
}

// NewMetrics registers a manager's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{lease.NewMetrics(reg), ttl.NewMetrics(reg), newAttemptMetrics(in), newSendMetrics(in),
		newPendingMetrics(in), newMoneyMetrics(in)}
}

// attemptMetrics are of attempts, from the queue to their end.
type attemptMetrics struct {
	jobs         *prometheus.CounterVec
	waits        *prometheus.CounterVec
	givenUp      *prometheus.CounterVec
	queueDepth   *prometheus.GaugeVec
	queueSeconds prometheus.Histogram
	landed       *prometheus.HistogramVec
}

func newAttemptMetrics(in metric.In) attemptMetrics {
	seconds := prometheus.ExponentialBuckets(0.05, 2, 14) // 50 ms to 7 min
	return attemptMetrics{
		jobs: in.Counters("sender_jobs_total",
			"Attempts of jobs that have ended, by kind and outcome.", "kind", "outcome"),
		waits: in.Counters("sender_waits_total",
			"Times a stage made an intent wait.", "stage"),
		givenUp: in.Counters("sender_given_up_total",
			"Attempts that nobody tries again; of kind liquidation: LIQUIDATION_FAILED. The job is a dead letter.",
			"kind"),
		queueDepth: in.Gauges("worker_queue_depth", "Intents of a signer that wait for their nonce.", "signer"),
		queueSeconds: in.Histogram("worker_queue_seconds",
			"Time from an intent's storing to its claim.", seconds),
		landed: in.Histograms("sender_landed_age_seconds",
			"Age of a job, on the chain's clock, when its transaction was first seen in a block.",
			job.ExecutionSeconds(), "kind"),
	}
}

// sendMetrics are of transactions on their way to the nodes.
type sendMetrics struct {
	broadcasts   *prometheus.CounterVec
	replacements *prometheus.CounterVec
	capped       *prometheus.CounterVec
}

func newSendMetrics(in metric.In) sendMetrics {
	return sendMetrics{
		broadcasts: in.Counters("sender_broadcasts_total",
			"Broadcasts, repetitions included, by the class of the nodes' answer.", "class"),
		replacements: in.Counters("sender_replacements_total",
			"Further transactions at a nonce: EXEC pays more, CANCEL and FILL only spend it.", "lane", "kind"),
		capped: in.Counters("sender_price_capped_total",
			"Times a cap kept a price from being raised.", "lane"),
	}
}

// pendingMetrics are of transactions that wait for a block, or for theirs to be final.
type pendingMetrics struct {
	inFlight     *prometheus.GaugeVec
	liquidations *prometheus.GaugeVec
	unlanded     *unlanded
	held         *prometheus.GaugeVec
	foreign      *prometheus.CounterVec
}

func newPendingMetrics(in metric.In) pendingMetrics {
	u := newUnlanded()
	in.MustRegister(u)
	return pendingMetrics{
		inFlight: in.Gauges("sender_in_flight", "Transactions of a signer whose fate is open.", "signer"),
		liquidations: in.Gauges("sender_liquidations_in_flight",
			"Liquidations of a signer that are not final. Those not mined are limited over all senders.", "signer"),
		unlanded: u,
		held: in.Gauges("sender_held",
			"1 while a signer claims nothing: no funds, nodes refuse more, or with tiers nothing landed "+
				"for 12 blocks. It goes on by itself.", "signer"),
		foreign: in.Counters("sender_foreign_total",
			"Nonces spent by a transaction that is not ours. The signer is paused: somebody else has its key.",
			"signer"),
	}
}

// moneyMetrics are of what signers have and spend.
type moneyMetrics struct {
	budgetUsed *prometheus.GaugeVec
	balances   *prometheus.GaugeVec
	lasts      *prometheus.GaugeVec
}

func newMoneyMetrics(in metric.In) moneyMetrics {
	return moneyMetrics{
		budgetUsed: in.Gauges("sender_budget_used_ratio",
			"Part spent of what a lane may spend in 24 hours, net of execution fees; at 1 it sends nothing.",
			"signer", "lane"),
		balances: in.Gauges("sender_balance_bnb",
			"BNB that a signer has, by one endpoint.", "signer"),
		lasts: in.Gauges("sender_balance_lasts_seconds",
			"How long a signer's balance lasts at what it burnt in 24 hours, net of fees; missing while "+
				"it burns nothing.", "signer"),
	}
}

// money sets the metrics of what each lane of a signer has spent of its part in a day's budget.
func (m *Metrics) money(signer chain.Address, limit txm.Budget, spent, earned txm.ByLane) {
	for _, l := range job.Lanes() {
		m.budgetUsed.WithLabelValues(signer.Hex(), string(l)).Set(limit.Used(l, spent, earned))
	}
}

// balance sets the metrics of a signer's balance (wei), and of how long that lasts.
func (m *Metrics) balance(signer chain.Address, has, spent, earned chain.Uint) {
	const bnb, day = 1e18, 24 * 60 * 60
	m.balances.WithLabelValues(signer.Hex()).Set(has.Float() / bnb)
	if burn := spent.Sub(spent.Min(earned)).Float() / day; burn > 0 {
		m.lasts.WithLabelValues(signer.Hex()).Set(has.Float() / burn)
	} else {
		m.lasts.DeleteLabelValues(signer.Hex())
	}
}

func (m *Metrics) forget(signer chain.Address) {
	m.unlanded.forget(signer)
	for _, of := range []*prometheus.GaugeVec{m.inFlight, m.liquidations, m.held, m.queueDepth, m.budgetUsed,
		m.balances, m.lasts} {
		of.DeletePartialMatch(prometheus.Labels{"signer": signer.Hex()})
	}
}
