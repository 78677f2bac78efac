package ttl

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
)

// Metrics are the figures of the queues of a process, by the queue's name (TTL-9).
type Metrics struct {
	expired     *prometheus.CounterVec
	retries     *prometheus.CounterVec
	failures    *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	lengths     *lengths
}

// NewMetrics registers the metrics of ttl queues; a nil Registerer registers them nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	m := &Metrics{
		expired: in.Counters("ttl_expired_total",
			"Tries at expired entries that had not failed before.", "queue"),
		retries: in.Counters("ttl_retries_total", "Tries at entries that had failed before.", "queue"),
		failures: in.Counters("ttl_failures_total",
			"Tries that were reported as failed, panics included.", "queue"),
		deadLetters: in.Counters("ttl_dead_letters_total",
			"Entries given up after their last attempt.", "queue"),
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
		name: queue, lengths: m.lengths, expired: m.expired.WithLabelValues(queue),
		retries:  m.retries.WithLabelValues(queue),
		failures: m.failures.WithLabelValues(queue), deadLetters: m.deadLetters.WithLabelValues(queue),
	}
}

// Watched are the metrics of one queue.
type Watched struct {
	name                                    string
	lengths                                 *lengths
	expired, retries, failures, deadLetters prometheus.Counter
}

func (w *Watched) follow(stats func() Stats) { w.lengths.follow(w.name, stats) }

func (w *Watched) tried(again bool) {
	if again {
		w.retries.Inc()
		return
	}
	w.expired.Inc()
}

var (
	entriesDesc = prometheus.NewDesc("ttl_entries", "Entries of a queue by state: waiting (not expired), pending "+
		"(expired, not done), failed (those of the "+
		"pending that wait for another try).", []string{"queue", "state"}, nil)
	oldestDesc = prometheus.NewDesc("ttl_oldest_pending_seconds", "How long ago the pending entry that expired "+
		"first did so, by the queue's clock.",
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
