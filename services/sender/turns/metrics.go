package turns

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/evidence"
	"perpkeeper/pkg/metric"
)

// Metrics are the metrics of sharing jobs with other keepers (TIER-16). Races lost to another tier are
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
	in := metric.In{Registerer: reg}
	return &Metrics{
		evidence: evidence.NewMetrics(reg),
		takeovers: in.Counters("sender_tier_takeovers_total",
			"Jobs that this keeper claimed after another tier had its chance, by that tier.", "from"),
		outlived: in.Counters("sender_tier_outlived_total",
			"Jobs that left the queue for their age: ended where nobody executed what the venue takes no longer, "+
				"lapsed where they had no deadline.", "kind", "end"),
		elsewhere: in.Counters("sender_tier_own_elsewhere_total",
			"Jobs executed with a key of this keeper that no process of it has signed the transaction with: another "+
				"keeper has the key.", "signer"),
		waitingJobs: in.Gauge("sender_tier_queue_length", "Jobs that wait for this tier's turn."),
		suspected: in.Gauges("sender_tier_suspected",
			"1 while a tier is passed over, because it missed jobs running.", "tier"),
		evidenceLag: in.Gauge("sender_tier_evidence_lag_seconds",
			"Chain time from the block up to which the evidence of the tiers was read to the newest block."),
		recovering: in.Gauge("sender_tier_recovering",
			"1 while this keeper holds back after its start: the past is still being read, or the recovery buffer "+
				"runs."),
		agreement: in.Gauges("sender_tier_agreement_info",
			"Always 1; the fingerprint stands for what all keepers of a venue must have alike (window, tiers, "+
				"signers), and is the same in all of them.", "fingerprint"),
	}
}
