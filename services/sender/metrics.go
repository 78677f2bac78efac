package sender

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// Metrics are what the sender counts.
type Metrics struct {
	Leases *lease.Metrics
	notify *notifyMetrics

	admissions   *prometheus.CounterVec
	unreadable   *prometheus.CounterVec
	jobs         *prometheus.CounterVec
	waits        *prometheus.CounterVec
	broadcasts   *prometheus.CounterVec
	privates     *prometheus.CounterVec
	replacements *prometheus.CounterVec
	capped       *prometheus.CounterVec
	fills        prometheus.Counter
	givenUp      *prometheus.CounterVec
	foreign      *prometheus.CounterVec
	timeouts     *prometheus.CounterVec
	spent        *prometheus.GaugeVec
	reorgs       prometheus.Counter
	inFlight     *prometheus.GaugeVec
	liquidations *prometheus.GaugeVec
	held         *prometheus.GaugeVec
	paused       *prometheus.GaugeVec
	alarm        *prometheus.GaugeVec
	queueDepth   *prometheus.GaugeVec
	queueSeconds prometheus.Histogram
	sendAge      *prometheus.HistogramVec
	landed       *prometheus.HistogramVec
	delay        *prometheus.HistogramVec
	gasRaises    *prometheus.CounterVec
	gasShort     *prometheus.CounterVec
	opinions     *prometheus.CounterVec

	executed    *prometheus.CounterVec
	executedAge *prometheus.HistogramVec
	takeovers   *prometheus.CounterVec
	outlived    *prometheus.CounterVec
	waitingJobs prometheus.Gauge
	suspected   *prometheus.GaugeVec
	evidenceLag prometheus.Gauge
	recovering  prometheus.Gauge
}

// executionSeconds are the bounds of the time from a trigger to its execution. The steps of the alert rules (15, 30, 60
// s) and the objective (10 s) are among them, so that the rules are exact and not interpolated.
func executionSeconds() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120, 300}
}

// NewMetrics registers the sender's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	seconds := prometheus.ExponentialBuckets(0.05, 2, 14) // 50 ms to 7 min
	m := &Metrics{
		Leases: lease.NewMetrics(reg), notify: newNotifyMetrics(reg),
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_admissions_total",
			Help: "Jobs read from the topic, by what became of them: queued, refreshed, in_flight, cooling, misrouted.",
		}, []string{"result"}),
		unreadable: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_unreadable_records_total",
			Help: "Records of the job and price topics that nobody can read and that were passed over; those read " +
				"again at a start count again.",
		}, []string{"topic"}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_jobs_total", Help: "Arms of jobs that have ended, by kind and outcome.",
		}, []string{"kind", "outcome"}),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_waits_total", Help: "Times a stage told an intent to wait.",
		}, []string{"stage"}),
		broadcasts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_broadcasts_total",
			Help: "Broadcasts of stored transactions, repetitions included, by the class of the nodes' answer.",
		}, []string{"class"}),
		privates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_private_broadcasts_total",
			Help: "Transactions given to block builders beside the nodes, by the class of the answer.",
		}, []string{"class"}),
		replacements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_replacements_total",
			Help: "Further transactions at a nonce, by lane and kind: EXEC pays more, CANCEL and FILL only spend " +
				"the nonce.",
		}, []string{"lane", "kind"}),
		capped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_price_capped_total",
			Help: "Times a price could not be raised for the caps of its lane, job or day; the transaction is " +
				"broadcast as it is.",
		}, []string{"lane"}),
		fills: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sender_gaps_filled_total",
			Help: "Nonces that nobody needed and that were spent so that those above them could be mined.",
		}),
		givenUp: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_given_up_total",
			Help: "Arms after which no other is tried by itself; of kind liquidation: LIQUIDATION_FAILED. The job " +
				"is a dead letter.",
		}, []string{"kind"}),
		foreign: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_foreign_total",
			Help: "Nonces that a transaction which is not ours has spent. The signer is paused: somebody else has " +
				"its key.",
		}, []string{"signer"}),
		timeouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sender_confirmation_timeouts_total",
			Help: "Arms without a receipt for longer than the confirmation timeout, each counted once a tenure.",
		}, []string{"kind"}),
		spent: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_spent_wei",
			Help: "Wei that a signer has burnt in the last 24 hours, with what is in flight in full.",
		}, []string{"signer"}),
		reorgs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sender_receipts_taken_back_total", Help: "Mined transactions whose block left the chain.",
		}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_in_flight", Help: "Transactions of a signer whose fate is open.",
		}, []string{"signer"}),
		liquidations: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_liquidations_in_flight",
			Help: "Liquidations of a signer in flight; the sum over all senders of a keeper is limited.",
		}, []string{"signer"}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_held",
			Help: "1 while a signer claims nothing because it cannot pay for gas, or the nodes take no more of it; " +
				"it goes on by itself.",
		}, []string{"signer"}),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sender_paused",
			Help: "1 while a signer of this process is paused: it claims nothing new until an operator resumes it.",
		}, []string{"signer"}),
		alarm: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "monitor_alarm",
			Help: "1 while a monitor finds something wrong with the keepers of its venue, by what it is.",
		}, []string{"alarm"}),
		queueDepth: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "worker_queue_depth", Help: "Intents of a signer that wait for their nonce.",
		}, []string{"signer"}),
		queueSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "worker_queue_seconds", Help: "Time from an intent's storing to its claim.", Buckets: seconds,
		}),
		sendAge: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sender_send_age_seconds", Help: "Age of a job, on the chain's clock, at its first broadcast.",
			Buckets: seconds,
		}, []string{"kind"}),
		landed: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sender_landed_age_seconds",
			Help:    "Age of a job, on the chain's clock, when its transaction was first seen in a block.",
			Buckets: executionSeconds(),
		}, []string{"kind"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sender_execution_delay_seconds",
			Help: "Age of a job, on the chain's clock, when its transaction was final.", Buckets: executionSeconds(),
		}, []string{"kind"}),
	}
	m.simulations(reg)
	m.tiers(reg)
	reg.MustRegister(m.admissions, m.unreadable, m.jobs, m.waits, m.broadcasts, m.privates, m.replacements, m.capped,
		m.fills, m.givenUp, m.foreign, m.timeouts, m.spent,
		m.reorgs, m.inFlight, m.liquidations, m.held, m.paused, m.alarm, m.queueDepth, m.queueSeconds, m.sendAge,
		m.landed, m.delay)
	return m
}

// simulations registers what is counted of simulated calls.
func (m *Metrics) simulations(reg prometheus.Registerer) {
	m.gasRaises = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_gas_raises_total",
		Help: "Times a simulated call wanted more gas than was reckoned and was made again with more, by kind.",
	}, []string{"kind"})
	m.gasShort = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_gas_short_total",
		Help: "Times a simulated call wanted more gas than a transaction may have, by kind. The job waits and is " +
			"tried again.",
	}, []string{"kind"})
	m.opinions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_opinions_total",
		Help: "Second endpoints asked before a job was held back, by their answer: agrees, differs, contradicts (it " +
			"would succeed), silent.",
	}, []string{"result"})
	reg.MustRegister(m.gasRaises, m.gasShort, m.opinions)
}

// tiers registers what is counted where several keepers share the jobs (TIER-16). Races lost to another tier are
// sender_jobs_total of outcome lost_race.
func (m *Metrics) tiers(reg prometheus.Registerer) {
	m.executed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_tier_executed_total",
		Help: "Jobs that the chain shows as executed since this process watches, by the tier of the transaction's " +
			"sender; 0 is somebody else.",
	}, []string{"tier", "kind"})
	m.executedAge = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sender_tier_execution_age_seconds", Help: "Age of a job in the block in which a tier executed it.",
		Buckets: executionSeconds(),
	}, []string{"tier"})
	m.takeovers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_tier_takeovers_total",
		Help: "Jobs that this keeper claimed after another tier had its chance, by that tier.",
	}, []string{"from"})
	m.outlived = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_tier_outlived_total",
		Help: "Jobs that left the queue for their age: ended where nobody executed what the venue takes no longer, " +
			"lapsed where they had no deadline.",
	}, []string{"kind", "end"})
	m.waitingJobs = prometheus.NewGauge(prometheus.GaugeOpts{Name: "sender_tier_queue_length",
		Help: "Jobs that wait for this tier's turn."})
	m.suspected = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sender_tier_suspected", Help: "1 while a tier is passed over, because it missed jobs running.",
	}, []string{"tier"})
	m.evidenceLag = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sender_tier_evidence_lag_seconds",
		Help: "Chain time from the block up to which the evidence of the tiers was read to the newest block.",
	})
	m.recovering = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sender_tier_recovering",
		Help: "1 while this keeper holds back after its start: the past is still being read, or the recovery buffer " +
			"runs.",
	})
	reg.MustRegister(m.executed, m.executedAge, m.takeovers, m.outlived, m.waitingJobs, m.suspected, m.evidenceLag,
		m.recovering)
}

// executedBy counts an execution by a tier. Of a job that was never heard of the birth is 0, and its age unknown.
func (m *Metrics) executedBy(by int, kind job.Kind, birthMs, atMs uint64) {
	tier := strconv.Itoa(by)
	m.executed.WithLabelValues(tier, string(kind)).Inc()
	if birthMs > 0 {
		m.executedAge.WithLabelValues(tier).Observe(float64(atMs-min(atMs, birthMs)) / 1000)
	}
}

// RegisterMetrics is NewMetrics for a catalogue.
func RegisterMetrics(reg prometheus.Registerer) { NewMetrics(reg) }

// claimed counts the time an intent has waited.
func (m *Metrics) claimed(i txm.Intent) {
	m.queueSeconds.Observe(i.Waited.Seconds())
}

// forget drops what was said of a signer that is no longer ours.
func (m *Metrics) forget(signer chain.Address) {
	m.inFlight.DeleteLabelValues(signer.Hex())
	m.liquidations.DeleteLabelValues(signer.Hex())
	m.held.DeleteLabelValues(signer.Hex())
	m.queueDepth.DeleteLabelValues(signer.Hex())
	m.spent.DeleteLabelValues(signer.Hex())
}
