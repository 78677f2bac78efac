package turns

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"perpkeeper/pkg/evidence"
)

// Metrics are what is counted where several keepers share the jobs (TIER-16). Races lost to another tier are
// sender_jobs_total of outcome lost_race.
type Metrics struct {
	evidence    *evidence.Metrics
	takeovers   *prometheus.CounterVec
	outlived    *prometheus.CounterVec
	elsewhere   *prometheus.CounterVec
	waitingJobs prometheus.Gauge
	suspected   *prometheus.GaugeVec
	evidenceLag prometheus.Gauge
	recovering  prometheus.Gauge
	agreement   *prometheus.GaugeVec
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	m := &Metrics{evidence: evidence.NewMetrics(reg)}
	m.takeovers = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_tier_takeovers_total",
		Help: "Jobs that this keeper claimed after another tier had its chance, by that tier.",
	}, []string{"from"})
	m.outlived = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_tier_outlived_total",
		Help: "Jobs that left the queue for their age: ended where nobody executed what the venue takes no longer, " +
			"lapsed where they had no deadline.",
	}, []string{"kind", "end"})
	m.elsewhere = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_tier_own_elsewhere_total",
		Help: "Jobs executed with a key of this keeper that no process of it has signed the transaction with: " +
			"another keeper has the key.",
	}, []string{"signer"})
	m.waitingJobs = f.NewGauge(prometheus.GaugeOpts{Name: "sender_tier_queue_length",
		Help: "Jobs that wait for this tier's turn."})
	m.suspected = f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sender_tier_suspected", Help: "1 while a tier is passed over, because it missed jobs running.",
	}, []string{"tier"})
	m.evidenceLag = f.NewGauge(prometheus.GaugeOpts{
		Name: "sender_tier_evidence_lag_seconds",
		Help: "Chain time from the block up to which the evidence of the tiers was read to the newest block.",
	})
	m.recovering = f.NewGauge(prometheus.GaugeOpts{
		Name: "sender_tier_recovering",
		Help: "1 while this keeper holds back after its start: the past is still being read, or the recovery buffer " +
			"runs.",
	})
	m.agreement = f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sender_tier_agreement_info",
		Help: "Always 1; the fingerprint stands for what all keepers of a venue must have alike (window, tiers, " +
			"signers), and is the same in all of them.",
	}, []string{"fingerprint"})
	return m
}
