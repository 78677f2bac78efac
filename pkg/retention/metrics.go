package retention

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
)

// Metrics are the metrics of the archive.
type Metrics struct {
	moved, dropped, failures prometheus.Counter
	rows, bytes              *prometheus.GaugeVec
	oldest, late             prometheus.Gauge
}

// NewMetrics registers the metrics of the archive; a nil Registerer registers them nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		moved:   in.Counter("retention_moved_total", "Jobs that ended and were moved to the archive."),
		dropped: in.Counter("retention_dropped_total", "Weeks of the archive that were dropped."),
		failures: in.Counter("retention_failures_total",
			"Steps of the archive that failed; they are tried again."),
		rows: in.Gauges("retention_rows",
			"Attempts of jobs that have ended, by where they are: live (the tables that senders work with) or "+
				"archive.", "where"),
		bytes: in.Gauges("retention_bytes",
			"Disk that they take with their transactions, receipts and numbers, and indexes; live is all of these "+
				"tables.", "where"),
		oldest: in.Gauge("retention_oldest_timestamp_seconds",
			"Beginning of the oldest week that the archive holds, Unix seconds; 0 while it is empty."),
		late: in.Gauge("retention_late_seconds",
			"For how long the oldest job that has ended could have been in the archive; 0 where none could."),
	}
}

// show shows a stock.
func (m *Metrics) show(s Stock, after time.Duration) {
	var rows, bytes int64
	var oldest time.Time
	for _, w := range s.Weeks {
		if w.DroppedAt != nil {
			continue
		}
		rows, bytes = rows+w.Intents, bytes+w.Bytes
		if oldest.IsZero() {
			oldest = w.Start
		}
	}
	m.rows.WithLabelValues("live").Set(float64(s.Live))
	m.rows.WithLabelValues("archive").Set(float64(rows))
	m.bytes.WithLabelValues("live").Set(float64(s.LiveBytes))
	m.bytes.WithLabelValues("archive").Set(float64(bytes))
	m.oldest.Set(0)
	if !oldest.IsZero() {
		m.oldest.Set(float64(oldest.Unix()))
	}
	late := time.Duration(0)
	if after > 0 && !s.OldestLive.IsZero() {
		late = max(0, time.Since(s.OldestLive)-after)
	}
	m.late.Set(late.Seconds())
}
