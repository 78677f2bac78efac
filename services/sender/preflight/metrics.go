package preflight

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
)

// Metrics are the metrics of simulated calls.
type Metrics struct {
	gasRaises   *prometheus.CounterVec
	gasShort    *prometheus.CounterVec
	secondCalls *prometheus.CounterVec
	early       *prometheus.CounterVec
	dropped     prometheus.Counter
}

// Dropped counts verdicts that the log of checks has lost.
func (m *Metrics) Dropped(entries int) { m.dropped.Add(float64(entries)) }

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		gasRaises: in.Counters("sender_gas_raises_total",
			"Times a simulated call wanted more gas than was reckoned and was made again with more, by kind.", "kind"),
		gasShort: in.Counters("sender_gas_short_total",
			"Times a simulated call wanted more gas than a transaction may have, by kind. The job waits and is tried "+
				"again.", "kind"),
		secondCalls: in.Counters("sender_opinions_total",
			"Second endpoints asked before a job was held back, by their answer: agrees, differs, contradicts (it "+
				"would succeed), silent.", "result"),
		early: in.Counters("sender_early_calls_total",
			"Calls simulated while their jobs were being queued, by what became of the answers: used; or asked again "+
				"as outdated (another head, call or report by then, or no call was made), unsuccessful; or unused "+
				"(the job went no further).", "result"),
		dropped: in.Counter("sender_checks_dropped_total",
			"Verdicts of preflight checks that were not kept for job stories, as the database was away or slow."),
	}
}
