package delayed

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what a scanner counts (DLY-9).
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
	byKind := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"kind"})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &Metrics{
		added: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "delayed_added_total", Help: "Jobs that this process's sources added, by source.",
		}, []string{"source"}),
		found: prometheus.NewCounter(prometheus.CounterOpts{Name: "delayed_found_total",
			Help: "Due rows listed by scans of this process."}),
		done:   byKind("delayed_done_total", "Jobs done by this process."),
		failed: byKind("delayed_failed_total", "Attempts that failed, the last ones included."),
		parked: byKind("delayed_parked_total", "Jobs parked by this process, after their last attempt or for an "+
			"anomaly."),
		anomalies: byKind("delayed_anomalies_total", "Jobs parked because the data are wrong."),
		standing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "delayed_parked_jobs", Help: "Parked jobs that wait for an operator, at the end of the last scan.",
		}, []string{"kind"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "delayed_delay_seconds",
			Help: "How long after its due time a job was done, failed attempts before included, by the " +
				"database's clock.",
			Buckets: []float64{.1, 1, 5, 10, 30, 60, 300, 600, 3600, 4 * 3600, 86400},
		}, []string{"kind"}),
		late: gauge("delayed_late_seconds", "How long the oldest due job that is not done has been due, at the end "+
			"of the last scan."),
		scans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "delayed_scans_total", Help: "Scans by result: ok, failed.",
		}, []string{"result"}),
		failures: gauge("delayed_scan_failures_in_a_row",
			"How many scans have failed since the last one that did not."),
		expired: byKind("delayed_requests_expired_total", "Orders and requests that were still pending when the "+
			"venue stopped accepting reports for them."),
	}
	reg.MustRegister(m.added, m.found, m.done, m.failed, m.parked, m.anomalies, m.standing, m.delay, m.late, m.scans,
		m.failures, m.expired)
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
