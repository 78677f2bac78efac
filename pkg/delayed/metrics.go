package delayed

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the metrics of a scanner (DLY-9).
type Metrics struct {
	found     prometheus.Counter
	done      *prometheus.CounterVec
	failed    *prometheus.CounterVec
	anomalies *prometheus.CounterVec
	parked    *prometheus.GaugeVec
	delay     *prometheus.HistogramVec
	late      prometheus.Gauge
	failures  prometheus.Gauge
}

// NewMetrics registers the metrics of delayed jobs.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		found:     in.Counter("delayed_found_total", "Due rows listed by scans of this process."),
		done:      in.Counters("delayed_done_total", "Jobs done by this process.", "kind"),
		failed:    in.Counters("delayed_failed_total", "Attempts that failed, the last ones included.", "kind"),
		anomalies: in.Counters("delayed_anomalies_total", "Jobs parked because the data are wrong.", "kind"),
		parked: in.Gauges("delayed_parked_jobs",
			"Jobs parked for an operator, at the last scan.", "kind"),
		delay: in.Histograms("delayed_delay_seconds",
			"How long after its due time a job was done, by the database's clock.",
			[]float64{.1, 1, 5, 10, 30, 60, 300, 600, 3600, 4 * 3600, 86400}, "kind"),
		late: in.Gauge("delayed_late_seconds",
			"How long the oldest job not done has been due, at the last scan."),
		failures: in.Gauge("delayed_scan_failures_in_a_row",
			"Scans that failed since the last good one."),
	}
}

// ruled counts what became of one job.
func (m *Metrics) ruled(j Job, r Ruling) {
	if r.Status == Done {
		m.done.WithLabelValues(j.Kind).Inc()
		m.delay.WithLabelValues(j.Kind).Observe(j.ReadAt.Sub(j.DueAt).Seconds())
		return
	}
	m.failed.WithLabelValues(j.Kind).Inc()
	if IsAnomaly(r.Err) {
		m.anomalies.WithLabelValues(j.Kind).Inc()
	}
}

// scanned counts a scan. What stands is left as it was when the store could not be asked.
func (m *Metrics) scanned(s Summary, o Outlook) {
	m.found.Add(float64(s.Found))
	if s.Err != nil {
		m.failures.Inc()
		return
	}
	m.failures.Set(0)
	m.late.Set(o.Late.Seconds())
	m.parked.Reset()
	for kind, n := range o.Parked {
		m.parked.WithLabelValues(kind).Set(float64(n))
	}
}
