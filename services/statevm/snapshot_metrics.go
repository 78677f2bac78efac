package statevm

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/snapshot"
)

// snapshotMetrics are what is counted of snapshots.
type snapshotMetrics struct {
	newest, interval, seconds, bytes prometheus.Gauge
	failed                           prometheus.Counter
}

func newSnapshotMetrics(reg prometheus.Registerer) snapshotMetrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := snapshotMetrics{
		newest: gauge("statevm_snapshot_timestamp_seconds", "When the newest snapshot of the state was taken, Unix "+
			"seconds; 0 while there is none."),
		interval: gauge("statevm_snapshot_interval_seconds", "How often a snapshot of the state is to be taken; 0 = "+
			"never."),
		seconds: gauge("statevm_snapshot_seconds", "How long the last snapshot took that this process has taken."),
		bytes:   gauge("statevm_snapshot_bytes", "How large the last snapshot is that this process has taken."),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "statevm_snapshot_failures_total",
			Help: "Snapshots of the state that could not be taken, or old ones that could not be removed."}),
	}
	reg.MustRegister(m.newest, m.interval, m.seconds, m.bytes, m.failed)
	return m
}

func (m snapshotMetrics) taken(s snapshot.Manifest, took time.Duration) {
	m.newest.Set(float64(s.Taken.Unix()))
	m.seconds.Set(took.Seconds())
	m.bytes.Set(float64(s.Bytes()))
}
