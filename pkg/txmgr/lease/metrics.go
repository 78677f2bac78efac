package lease

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
)

// Metrics count what becomes of leases and of writes under them (NON-11).
type Metrics struct {
	acquire *prometheus.CounterVec
	renew   *prometheus.CounterVec
	rejects *prometheus.CounterVec
}

// NewMetrics registers the metrics of leases.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	return &Metrics{
		acquire: in.Counters("lease_acquire_total",
			"Tries to take a lease, by result: won, held, gone (no session any more), ahead, error.", "result"),
		renew: in.Counters("lease_renew_total",
			"Renewals of leases, by result: kept, lost, error (asked again until the lease ends).", "result"),
		rejects: in.Counters("fence_reject_total",
			"Writes refused because the lease had moved on, by operation.", "op"),
	}
}

// Rejected counts a write that was fenced out. It ignores other errors.
func (m *Metrics) Rejected(err error) {
	if lost, is := errors.AsType[*LostError](err); is {
		m.rejects.WithLabelValues(lost.Op).Inc()
	}
}

func (m *Metrics) acquired(err error) { m.acquire.WithLabelValues(result(err, "won")).Inc() }
func (m *Metrics) renewed(err error)  { m.renew.WithLabelValues(result(err, "kept")).Inc() }

func result(err error, success string) string {
	switch {
	case err == nil:
		return success
	case Held(err):
		return holderState(err)
	case Lost(err):
		return "lost"
	}
	return "error"
}

// holderState is the state of a lease that somebody else holds.
func holderState(err error) string {
	held, _ := errors.AsType[*HeldError](err)
	switch {
	case held.Gone:
		return "gone"
	case held.ClockWentBack():
		return "ahead"
	}
	return "held"
}
