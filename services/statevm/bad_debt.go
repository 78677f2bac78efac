package statevm

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/perp"
)

// recentWindow is how old a block may be whose losses are counted. Rates are about the present: a statevm that reads
// the past, at its first start or to fill another generation, would tell of old losses as if they were today's.
const recentWindow = 10 * time.Minute

// losses are what liquidations closed, and what they did not cover (LIQ-11, LIQ-17). They are of blocks that may still
// leave the chain, and each generation that is kept up to date counts them: the ratio between them is what they are
// for.
type losses struct {
	insolvent  prometheus.Counter
	badDebt    prometheus.Counter
	liquidated prometheus.Counter
	closes     prometheus.Counter
}

func newLosses(reg prometheus.Registerer) losses {
	in := metric.In{Registerer: reg}
	return losses{
		insolvent: in.Counter("statevm_insolvent_closes_total",
			"Positions closed without covering their costs (InsolventClose), in recent blocks."),
		badDebt: in.Counter("statevm_bad_debt_usd_total",
			"USD that closed positions did not cover, in recent blocks."),
		liquidated: in.Counter("statevm_liquidated_usd_total",
			"USD liquidated, by whichever keeper, in recent blocks."),
		closes: in.Counter("statevm_liquidations_total",
			"Positions liquidated, by whichever keeper, in recent blocks."),
	}
}

// counted counts an event, if it is of a block that is recent at a time.
func (l losses) counted(e perp.Event, now time.Time) {
	switch e := e.(type) {
	case perp.ClosedInsolvent:
		if recent(e.Debt.Stamp, now) {
			l.insolvent.Inc()
			l.badDebt.Add(dollars(e.Debt.RemainingCostUsd))
		}
	case perp.PositionDecreased:
		if e.OrderType == perp.Liquidation && recent(e.Position.Stamp, now) {
			l.closes.Inc()
			l.liquidated.Add(dollars(e.SizeDeltaUsd))
		}
	}
}

func recent(s perp.Stamp, now time.Time) bool {
	return now.Sub(time.UnixMilli(int64(s.TimeMs))) < recentWindow
}

// dollars are those of an amount with 30 decimals, for a gauge.
func dollars(usd chain.Uint) float64 { return usd.Float() / 1e30 }
