package statevm

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
	"perpkeeper/pkg/snapshot"
)

// snapshotMetrics are what is counted of snapshots.
type snapshotMetrics struct {
	newest, interval, seconds, bytes prometheus.Gauge
	failed                           prometheus.Counter
}

func newSnapshotMetrics(reg prometheus.Registerer) snapshotMetrics {
	in := metric.In{Registerer: reg}
	return snapshotMetrics{
		newest: in.Gauge("statevm_snapshot_timestamp_seconds",
			"When the newest snapshot of the state was taken, Unix seconds; 0 while there is none."),
		interval: in.Gauge("statevm_snapshot_interval_seconds",
			"How often a snapshot of the state is to be taken; 0 = never."),
		seconds: in.Gauge("statevm_snapshot_seconds",
			"How long the last snapshot took that this process has taken."),
		bytes: in.Gauge("statevm_snapshot_bytes",
			"How large the last snapshot is that this process has taken."),
		failed: in.Counter("statevm_snapshot_failures_total",
			"Snapshots of the state that could not be taken, or old ones that could not be removed."),
	}
}

func (m snapshotMetrics) taken(s snapshot.Manifest, took time.Duration) {
	m.newest.Set(float64(s.Taken.Unix()))
	m.seconds.Set(took.Seconds())
	m.bytes.Set(float64(s.Bytes()))
}
