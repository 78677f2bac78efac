// Package metric makes and registers metrics, each in one expression. A name that is registered already, or that
// Prometheus does not take, panics: it is a mistake in the program.
package metric

import (
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// In registers what it makes. The one of no registry only makes it.
type In struct{ prometheus.Registerer }

// Counter makes a counter.
func (in In) Counter(name, help string) prometheus.Counter {
	return register(in, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

// Counters makes a counter for each combination of values of the labels.
func (in In) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(in, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// Gauge makes a gauge.
func (in In) Gauge(name, help string) prometheus.Gauge {
	return register(in, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

// Gauges makes a gauge for each combination of values of the labels.
func (in In) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(in, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

// Histogram makes a histogram with the upper bounds of its buckets.
func (in In) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(in, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}))
}

// Histograms makes a histogram for each combination of values of the labels.
func (in In) Histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(in, prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

func register[C prometheus.Collector](in In, c C) C {
	if in.Registerer != nil {
		in.MustRegister(c)
	}
	return c
}

// Bool is a yes or no as metrics have it.
func Bool(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// OfJob observes a value with the job it belongs to as exemplar, so that a panel leads to the job's page. An id that is
// too long for an exemplar is left out.
func OfJob(o prometheus.Observer, value float64, id string) {
	const name = "job_id"
	with, can := o.(prometheus.ExemplarObserver)
	if !can || utf8.RuneCountInString(name+id) > prometheus.ExemplarMaxRunes {
		o.Observe(value)
		return
	}
	with.ObserveWithExemplar(value, prometheus.Labels{name: id})
}
