package turns

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/tier/evidence"
)

// Metrics are the metrics of sharing jobs with other keepers (TIER-16). Races lost to another tier are
// sender_jobs_total of outcome lost_race.
type Metrics struct {
	evidence    *evidence.Metrics
	takeovers   *prometheus.CounterVec
	external    *prometheus.CounterVec
	waitingJobs prometheus.Gauge
	suspected   *prometheus.GaugeVec
	evidenceLag prometheus.Gauge
	recovering  prometheus.Gauge
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		evidence: evidence.NewMetrics(reg),
		takeovers: in.Counters("sender_tier_takeovers_total",
			"Jobs claimed here after another tier had its chance, by that tier.", "from"),
		external: in.Counters("sender_external_key_use_total",
			"Jobs executed with this keeper's key that it did not sign: another keeper has the key.", "signer"),
		waitingJobs: in.Gauge("sender_tier_queue_length", "Jobs that wait for this tier's turn."),
		suspected: in.Gauges("sender_tier_suspected",
			"1 while a tier is passed over for missed jobs.", "tier"),
		evidenceLag: in.Gauge("sender_tier_evidence_lag_seconds",
			"By how much chain time the evidence of the tiers is behind the newest block."),
		recovering: in.Gauge("sender_tier_recovering",
			"1 while this keeper holds back after its start."),
	}
}
