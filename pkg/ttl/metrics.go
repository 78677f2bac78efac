package ttl

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics are the figures of the queues of a process, by the queue's name (TTL-9).
type Metrics struct {
	retries  *prometheus.CounterVec
	failures *prometheus.CounterVec
	lengths  *lengths
}

// NewMetrics registers the metrics of ttl queues; a nil Registerer registers them nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	m := &Metrics{
		retries: in.Counters("ttl_retries_total",
			"Tries at entries that had failed.", "queue"),
		failures: in.Counters("ttl_failures_total",
			"Tries that failed, panics included.", "queue"),
		lengths: &lengths{queues: map[string]func() Stats{}},
	}
	if reg != nil {
		reg.MustRegister(m.lengths)
	}
	return m
}

// Watch returns the metrics of one queue.
func (m *Metrics) Watch(queue string) *Watched {
	return &Watched{
		name: queue, lengths: m.lengths, retries: m.retries.WithLabelValues(queue),
		failures: m.failures.WithLabelValues(queue),
	}
}

// Watched are the metrics of one queue.
type Watched struct {
	name              string
	lengths           *lengths
	retries, failures prometheus.Counter
}

func (w *Watched) follow(stats func() Stats) { w.lengths.follow(w.name, stats) }

var (
	entriesDesc = prometheus.NewDesc("ttl_entries",
		"Entries by state: waiting (not expired), pending (expired, not done), failed (pending, to "+
			"be tried again).", []string{"queue", "state"}, nil)
	oldestDesc = prometheus.NewDesc("ttl_oldest_pending_seconds",
		"For how long the oldest pending entry has been expired.",
		[]string{"queue"}, nil)
)

// lengths is a collector, because an age grows while nothing happens.
type lengths struct {
	mu     sync.Mutex
	queues map[string]func() Stats
}

func (l *lengths) follow(name string, stats func() Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues[name] = stats
}

// Describe implements prometheus.Collector.
func (l *lengths) Describe(descs chan<- *prometheus.Desc) {
	descs <- entriesDesc
	descs <- oldestDesc
}

// Collect implements prometheus.Collector.
func (l *lengths) Collect(metrics chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, stats := range l.queues {
		s := stats()
		for state, n := range map[string]int{"waiting": s.Waiting, "pending": s.Pending, "failed": s.Failed} {
			metrics <- prometheus.MustNewConstMetric(entriesDesc, prometheus.GaugeValue, float64(n), name, state)
		}
		metrics <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, s.OldestPending.Seconds(), name)
	}
}
