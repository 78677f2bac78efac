package txmanager

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/metric"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/ttl"
	"perpkeeper/pkg/txm"
)

// Metrics are the metrics of a manager.
type Metrics struct {
	Leases *lease.Metrics
	queues *ttl.Metrics // of retries
	attemptMetrics
	sendMetrics
	flightMetrics
	moneyMetrics
}

// NewMetrics registers a manager's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{lease.NewMetrics(reg), ttl.NewMetrics(reg), newAttemptMetrics(in), newSendMetrics(in),
		newFlightMetrics(in), newMoneyMetrics(in)}
}

// attemptMetrics are of attempts, from the queue to their end.
type attemptMetrics struct {
	jobs         *prometheus.CounterVec
	waits        *prometheus.CounterVec
	givenUp      *prometheus.CounterVec
	queueDepth   *prometheus.GaugeVec
	queueSeconds prometheus.Histogram
	sendAge      *prometheus.HistogramVec
	landed       *prometheus.HistogramVec
	delay        *prometheus.HistogramVec
}

func newAttemptMetrics(in metric.In) attemptMetrics {
	seconds := prometheus.ExponentialBuckets(0.05, 2, 14) // 50 ms to 7 min
	return attemptMetrics{
		jobs: in.Counters("sender_jobs_total",
			"Attempts of jobs that have ended, by kind and outcome.", "kind", "outcome"),
		waits: in.Counters("sender_waits_total",
			"Times a stage made an intent wait; the stage gate was called settle before.", "stage"),
		givenUp: in.Counters("sender_given_up_total",
			"Attempts after which no other is tried by itself; of kind liquidation: LIQUIDATION_FAILED. The job is a "+
				"dead letter.", "kind"),
		queueDepth: in.Gauges("worker_queue_depth", "Intents of a signer that wait for their nonce.", "signer"),
		queueSeconds: in.Histogram("worker_queue_seconds",
			"Time from an intent's storing to its claim.", seconds),
		sendAge: in.Histograms("sender_send_age_seconds",
			"Age of a job, on the chain's clock, at its first broadcast.", seconds, "kind"),
		landed: in.Histograms("sender_landed_age_seconds",
			"Age of a job, on the chain's clock, when its transaction was first seen in a "+
				"block.", job.ExecutionSeconds(), "kind"),
		delay: in.Histograms("sender_execution_delay_seconds",
			"Age of a job, on the chain's clock, when its transaction was final.", job.ExecutionSeconds(), "kind"),
	}
}

// sendMetrics are of transactions on their way to the nodes.
type sendMetrics struct {
	broadcasts   *prometheus.CounterVec
	privates     *prometheus.CounterVec
	replacements *prometheus.CounterVec
	capped       *prometheus.CounterVec
	fills        prometheus.Counter
}

func newSendMetrics(in metric.In) sendMetrics {
	return sendMetrics{
		broadcasts: in.Counters("sender_broadcasts_total",
			"Broadcasts of stored transactions, repetitions included, by the class of the nodes' answer.", "class"),
		privates: in.Counters("sender_private_broadcasts_total",
			"Transactions given to private endpoints, alone or beside the nodes, by the class of the "+
				"answer.", "class"),
		replacements: in.Counters("sender_replacements_total",
			"Further transactions at a nonce, by lane and kind: EXEC pays more, CANCEL and FILL only spend the "+
				"nonce.", "lane", "kind"),
		capped: in.Counters("sender_price_capped_total",
			"Times a price could not be raised for the caps of its lane, job or day; the transaction is broadcast "+
				"as it is.", "lane"),
		fills: in.Counter("sender_gaps_filled_total",
			"Nonces that nobody needed and that were spent so that those above them could be mined."),
	}
}

// flightMetrics are of transactions that wait for a block, or for theirs to be final.
type flightMetrics struct {
	inFlight     *prometheus.GaugeVec
	liquidations *prometheus.GaugeVec
	unlanded     *unlanded
	held         *prometheus.GaugeVec
	timeouts     *prometheus.CounterVec
	reorgs       prometheus.Counter
	foreign      *prometheus.CounterVec
}

func newFlightMetrics(in metric.In) flightMetrics {
	u := newUnlanded()
	in.MustRegister(u)
	return flightMetrics{
		inFlight: in.Gauges("sender_in_flight", "Transactions of a signer whose fate is open.", "signer"),
		liquidations: in.Gauges("sender_liquidations_in_flight",
			"Liquidations of a signer in flight, also what is mined and not final; the sum over all senders of a "+
				"keeper of what is not mined is limited.", "signer"),
		unlanded: u,
		held: in.Gauges("sender_held",
			"1 while a signer claims nothing because it cannot pay for gas, the nodes take no more of it or, with "+
				"tiers, what it still presses has not landed for 12 blocks; it goes on by itself.", "signer"),
		timeouts: in.Counters("sender_confirmation_timeouts_total",
			"Attempts without a receipt for longer than the confirmation timeout, each counted once a tenure.", "kind"),
		reorgs: in.Counter("sender_receipts_taken_back_total",
			"Mined transactions whose block left the chain."),
		foreign: in.Counters("sender_foreign_total",
			"Nonces that a transaction which is not ours has spent. The signer is paused: somebody else has its "+
				"key.", "signer"),
	}
}

// moneyMetrics are of what signers have and spend.
type moneyMetrics struct {
	spent      *prometheus.GaugeVec
	budgetUsed *prometheus.GaugeVec
	balances   *prometheus.GaugeVec
	lasts      *prometheus.GaugeVec
}

func newMoneyMetrics(in metric.In) moneyMetrics {
	return moneyMetrics{
		spent: in.Gauges("sender_spent_wei",
			"Wei that a signer has burnt in the last 24 hours, with what is in flight in full.", "signer"),
		budgetUsed: in.Gauges("sender_budget_used_ratio",
			"Which part of what a lane of a signer may spend in 24 hours is spent, net of execution fees; with 1 "+
				"the lane sends nothing.", "signer", "lane"),
		balances: in.Gauges("sender_balance_bnb", "BNB that a signer has, as one endpoint says.", "signer"),
		lasts: in.Gauges("sender_balance_lasts_seconds",
			"For how long a signer's balance lasts at what it burnt in the last 24 hours, net of execution fees; "+
				"missing while it burns nothing.", "signer"),
	}
}

// money sets the metrics of what a signer has spent of a day's budget, and of each lane's part in it.
func (m *Metrics) money(signer chain.Address, limit txm.Budget, spent, earned txm.ByLane) {
	m.spent.WithLabelValues(signer.Hex()).Set(spent.Sum().Float())
	for _, l := range job.Lanes() {
		m.budgetUsed.WithLabelValues(signer.Hex(), string(l)).Set(limit.Used(l, spent, earned))
	}
}

// balance sets the metrics of a signer's balance (wei), and of how long that lasts.
func (m *Metrics) balance(signer chain.Address, has, spent, earned perp.Uint) {
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
	for _, of := range []*prometheus.GaugeVec{m.inFlight, m.liquidations, m.held, m.queueDepth, m.spent, m.budgetUsed,
		m.balances, m.lasts} {
		of.DeletePartialMatch(prometheus.Labels{"signer": signer.Hex()})
	}
}
