package planner

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/job"
)

// Metrics are what the planner counts.
type Metrics struct {
	published *prometheus.CounterVec
	liveJobs  *prometheus.GaugeVec
	open      *prometheus.GaugeVec
	block     prometheus.Gauge
	skew      prometheus.Gauge
	seconds   prometheus.Histogram
}

// NewMetrics registers the planner's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "planner_jobs_published_total", Help: "Jobs written to the job topic, repetitions at sweeps included.",
		}, []string{"kind"}),
		liveJobs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "planner_jobs_live", Help: "Jobs that are due at the last pass.",
		}, []string{"kind"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "planner_open", Help: "Open positions, orders and requests of this planner's shards.",
		}, []string{"what"}),
		block: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "planner_block", Help: "Number of the block the last pass was made on.",
		}),
		skew: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "planner_partition_skew_blocks", Help: "By how many blocks the foremost partition is ahead of the watermark.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "planner_pass_seconds", Help: "Time of one pass over all positions, orders and requests, without the snapshot.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}),
	}
	reg.MustRegister(m.published, m.liveJobs, m.open, m.block, m.skew, m.seconds)
	return m
}

// RegisterMetrics registers everything this process counts, for the catalogue.
func RegisterMetrics(reg prometheus.Registerer) { NewMetrics(reg) }

func (m *Metrics) passed(w world, jobs []job.Job, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	m.block.Set(float64(w.block.Number))
	m.open.WithLabelValues("positions").Set(float64(len(w.positions)))
	m.open.WithLabelValues("orders").Set(float64(len(w.orders)))
	m.open.WithLabelValues("requests").Set(float64(len(w.requests)))
	count := map[job.Kind]int{}
	for _, j := range jobs {
		count[j.Kind]++
	}
	for _, kind := range job.Kinds() {
		m.liveJobs.WithLabelValues(string(kind)).Set(float64(count[kind]))
	}
}
