package delayed

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
)

// Metrics are the metrics of a scanner (DLY-9).
type Metrics struct {
	added     *prometheus.CounterVec
	found     prometheus.Counter
	done      *prometheus.CounterVec
	failed    *prometheus.CounterVec
	parked    *prometheus.CounterVec
	anomalies *prometheus.CounterVec
	standing  *prometheus.GaugeVec
	delay     *prometheus.HistogramVec
	late      prometheus.Gauge
	scans     *prometheus.CounterVec
	failures  prometheus.Gauge
	expired   *prometheus.CounterVec
}

// NewMetrics registers the metrics of delayed jobs.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	m := &Metrics{
		added: in.Counters("delayed_added_total",
			"Jobs that this process's sources added, by source.", "source"),
		found:  in.Counter("delayed_found_total", "Due rows listed by scans of this process."),
		done:   in.Counters("delayed_done_total", "Jobs done by this process.", "kind"),
		failed: in.Counters("delayed_failed_total", "Attempts that failed, the last ones included.", "kind"),
		parked: in.Counters("delayed_parked_total",
			"Jobs parked by this process, after their last attempt or for an anomaly.", "kind"),
		anomalies: in.Counters("delayed_anomalies_total", "Jobs parked because the data are wrong.", "kind"),
		standing: in.Gauges("delayed_parked_jobs",
			"Parked jobs that wait for an operator, at the end of the last scan.", "kind"),
		delay: in.Histograms("delayed_delay_seconds",
			"How long after its due time a job was done, failed attempts before included, by the database's "+
				"clock.", []float64{.1, 1, 5, 10, 30, 60, 300, 600, 3600, 4 * 3600, 86400}, "kind"),
		late: in.Gauge("delayed_late_seconds",
			"How long the oldest due job that is not done has been due, at the end of the last scan."),
		scans: in.Counters("delayed_scans_total", "Scans by result: ok, failed.", "result"),
		failures: in.Gauge("delayed_scan_failures_in_a_row",
			"How many scans have failed since the last one that did not."),
		expired: in.Counters("delayed_requests_expired_total",
			"Orders and requests that were still pending when the venue stopped accepting reports for them.", "kind"),
	}
	for _, result := range []string{"ok", "failed"} {
		m.scans.WithLabelValues(result)
	}
	return m
}

// ruled counts what became of one job.
func (m *Metrics) ruled(j Job, r Ruling) {
	if r.Status == Done {
		m.done.WithLabelValues(j.Kind).Inc()
		m.delay.WithLabelValues(j.Kind).Observe(j.ReadAt.Sub(j.DueAt).Seconds())
		return
	}
	m.failed.WithLabelValues(j.Kind).Inc()
	if r.Status == Parked {
		m.parked.WithLabelValues(j.Kind).Inc()
	}
	if IsAnomaly(r.Err) {
		m.anomalies.WithLabelValues(j.Kind).Inc()
	}
}

// scanned counts a scan. What stands is left as it was when the store could not be asked.
func (m *Metrics) scanned(s Summary, o Outlook) {
	m.found.Add(float64(s.Found))
	if s.Err != nil {
		m.scans.WithLabelValues("failed").Inc()
		m.failures.Inc()
		return
	}
	m.scans.WithLabelValues("ok").Inc()
	m.failures.Set(0)
	m.late.Set(o.Late.Seconds())
	m.standing.Reset()
	for kind, n := range o.Parked {
		m.standing.WithLabelValues(kind).Set(float64(n))
	}
}
