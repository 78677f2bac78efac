package txmanager

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/ttl"
	"perpkeeper/pkg/txm"
)

// Metrics are what a manager counts.
type Metrics struct {
	Leases *lease.Metrics
	queues *ttl.Metrics // of retries
	armMetrics
	sendMetrics
	flightMetrics
	moneyMetrics
}

// NewMetrics registers a manager's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{lease.NewMetrics(reg), ttl.NewMetrics(reg), newArmMetrics(f), newSendMetrics(f),
		newFlightMetrics(reg, f), newMoneyMetrics(f)}
}

// armMetrics are of arms, from the queue to their end.
type armMetrics struct {
	jobs         *prometheus.CounterVec
	waits        *prometheus.CounterVec
	givenUp      *prometheus.CounterVec
	queueDepth   *prometheus.GaugeVec
	queueSeconds prometheus.Histogram
	sendAge      *prometheus.HistogramVec
	landed       *prometheus.HistogramVec
	delay        *prometheus.HistogramVec
}

func newArmMetrics(f promauto.Factory) armMetrics {
	seconds := prometheus.ExponentialBuckets(0.05, 2, 14) // 50 ms to 7 min
	return armMetrics{
		jobs: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_jobs_total", Help: "Arms of jobs that have ended, by kind and outcome.",
		}, []string{"kind", "outcome"}),
		waits: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_waits_total",
			Help: "Times a stage made an intent wait; the stage gate was called settle before.",
		}, []string{"stage"}),
		givenUp: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_given_up_total",
			Help: "Arms after which no other is tried by itself; of kind liquidation: LIQUIDATION_FAILED. The job " +
				"is a dead letter.",
		}, []string{"kind"}),
		queueDepth: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "worker_queue_depth", Help: "Intents of a signer that wait for their nonce.",
		}, []string{"signer"}),
		queueSeconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "worker_queue_seconds", Help: "Time from an intent's storing to its claim.", Buckets: seconds,
		}),
		sendAge: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sender_send_age_seconds", Help: "Age of a job, on the chain's clock, at its first broadcast.",
			Buckets: seconds,
		}, []string{"kind"}),
		landed: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sender_landed_age_seconds",
			Help:    "Age of a job, on the chain's clock, when its transaction was first seen in a block.",
			Buckets: job.ExecutionSeconds(),
		}, []string{"kind"}),
		delay: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sender_execution_delay_seconds",
			Help:    "Age of a job, on the chain's clock, when its transaction was final.",
			Buckets: job.ExecutionSeconds(),
		}, []string{"kind"}),
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

func newSendMetrics(f promauto.Factory) sendMetrics {
	return sendMetrics{
		broadcasts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_broadcasts_total",
			Help: "Broadcasts of stored transactions, repetitions included, by the class of the nodes' answer.",
		}, []string{"class"}),
		privates: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_private_broadcasts_total",
			Help: "Transactions given to private endpoints, alone or beside the nodes, by the class of the answer.",
		}, []string{"class"}),
		replacements: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_replacements_total",
			Help: "Further transactions at a nonce, by lane and kind: EXEC pays more, CANCEL and FILL only spend " +
				"the nonce.",
		}, []string{"lane", "kind"}),
		capped: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_price_capped_total",
			Help: "Times a price could not be raised for the caps of its lane, job or day; the transaction is " +
				"broadcast as it is.",
		}, []string{"lane"}),
		fills: f.NewCounter(prometheus.CounterOpts{
			Name: "sender_gaps_filled_total",
			Help: "Nonces that nobody needed and that were spent so that those above them could be mined.",
		}),
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

func newFlightMetrics(reg prometheus.Registerer, f promauto.Factory) flightMetrics {
	u := newUnlanded()
	reg.MustRegister(u)
	return flightMetrics{
		inFlight: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_in_flight", Help: "Transactions of a signer whose fate is open.",
		}, []string{"signer"}),
		liquidations: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_liquidations_in_flight",
			Help: "Liquidations of a signer in flight; the sum over all senders of a keeper is limited.",
		}, []string{"signer"}),
		unlanded: u,
		held: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_held",
			Help: "1 while a signer claims nothing because it cannot pay for gas, or the nodes take no more of it; " +
				"it goes on by itself.",
		}, []string{"signer"}),
		timeouts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_confirmation_timeouts_total",
			Help: "Arms without a receipt for longer than the confirmation timeout, each counted once a tenure.",
		}, []string{"kind"}),
		reorgs: f.NewCounter(prometheus.CounterOpts{
			Name: "sender_receipts_taken_back_total", Help: "Mined transactions whose block left the chain.",
		}),
		foreign: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_foreign_total",
			Help: "Nonces that a transaction which is not ours has spent. The signer is paused: somebody else has " +
				"its key.",
		}, []string{"signer"}),
	}
}

// moneyMetrics are of what signers have and spend.
type moneyMetrics struct {
	spent      *prometheus.GaugeVec
	budgetUsed *prometheus.GaugeVec
	balances   *prometheus.GaugeVec
	lasts      *prometheus.GaugeVec
}

func newMoneyMetrics(f promauto.Factory) moneyMetrics {
	return moneyMetrics{
		spent: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_spent_wei",
			Help: "Wei that a signer has burnt in the last 24 hours, with what is in flight in full.",
		}, []string{"signer"}),
		budgetUsed: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_budget_used_ratio",
			Help: "Which part of what a lane of a signer may spend in 24 hours is spent, net of execution fees; with " +
				"1 the lane sends nothing.",
		}, []string{"signer", "lane"}),
		balances: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_balance_bnb", Help: "BNB that a signer has, as one endpoint says.",
		}, []string{"signer"}),
		lasts: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_balance_lasts_seconds",
			Help: "For how long a signer's balance lasts at what it burnt in the last 24 hours, net of execution " +
				"fees; missing while it burns nothing.",
		}, []string{"signer"}),
	}
}

// claimed counts the time an intent has waited.
func (m *Metrics) claimed(i txm.Intent) {
	m.queueSeconds.Observe(i.Waited.Seconds())
}

// money says what a signer has spent of a day's money, and which part of it each lane.
func (m *Metrics) money(signer chain.Address, limit txm.Budget, spent, earned txm.ByLane) {
	m.spent.WithLabelValues(signer.Hex()).Set(spent.Sum().Float())
	for _, l := range txm.Lanes() {
		m.budgetUsed.WithLabelValues(signer.Hex(), string(l)).Set(limit.Used(l, spent, earned))
	}
}

// balance says what a signer has, and for how long that lasts, in wei.
func (m *Metrics) balance(signer chain.Address, has, spent, earned perp.Uint) {
	const bnb, day = 1e18, 24 * 60 * 60
	m.balances.WithLabelValues(signer.Hex()).Set(has.Float() / bnb)
	if burn := spent.Sub(spent.Min(earned)).Float() / day; burn > 0 {
		m.lasts.WithLabelValues(signer.Hex()).Set(has.Float() / burn)
	} else {
		m.lasts.DeleteLabelValues(signer.Hex())
	}
}

// forget drops what was said of a signer that is no longer ours.
func (m *Metrics) forget(signer chain.Address) {
	m.inFlight.DeleteLabelValues(signer.Hex())
	m.unlanded.forget(signer)
	m.liquidations.DeleteLabelValues(signer.Hex())
	m.held.DeleteLabelValues(signer.Hex())
	m.queueDepth.DeleteLabelValues(signer.Hex())
	m.spent.DeleteLabelValues(signer.Hex())
	m.budgetUsed.DeletePartialMatch(prometheus.Labels{"signer": signer.Hex()})
	m.balances.DeleteLabelValues(signer.Hex())
	m.lasts.DeleteLabelValues(signer.Hex())
}
