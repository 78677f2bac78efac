package preflight

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are what is counted of simulated calls.
type Metrics struct {
	gasRaises *prometheus.CounterVec
	gasShort  *prometheus.CounterVec
	opinions  *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	m := &Metrics{}
	m.gasRaises = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_gas_raises_total",
		Help: "Times a simulated call wanted more gas than was reckoned and was made again with more, by kind.",
	}, []string{"kind"})
	m.gasShort = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_gas_short_total",
		Help: "Times a simulated call wanted more gas than a transaction may have, by kind. The job waits and is " +
			"tried again.",
	}, []string{"kind"})
	m.opinions = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sender_opinions_total",
		Help: "Second endpoints asked before a job was held back, by their answer: agrees, differs, contradicts (it " +
			"would succeed), silent.",
	}, []string{"result"})
	return m
}
