package due

import (
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Position decides about liquidating a position.
func (m *Moment) Position(p perp.Position) Decision {
	if d, open := m.openPosition(p); !open {
		return d
	}
	verdict, err := m.View().Judge(p)
	if err != nil {
		d := liquidationOf(p)
		return d.not("%v", err)
	}
	return m.Judged(p, verdict)
}

// Liquidatable is whether a position is due by [Moment.Position], without the reason: who looks for a due time looks at
// a thousand positions in each of hundreds of past seconds.
func (m *Moment) Liquidatable(p perp.Position) bool {
	market, known := m.Market(p.Market)
	index, err := m.index(market)
	if !known || err != nil || p.Status != perp.Active || !perp.LiquidationWindow(p).Holds(index.Second()) {
		return false
	}
	_, is, err := m.View().Liquidatable(p)
	return err == nil && is
}

// Judged decides about liquidating an open position that has been judged at this moment already, as the index does.
func (m *Moment) Judged(p perp.Position, v perp.Verdict) Decision {
	d, open := m.openPosition(p)
	if !open {
		return d
	}
	required := v.MinCollateralUsd.Max(v.MinCollateralUsdForLeverage)
	if !v.Liquidatable {
		return d.not("it is healthy: margin ratio %s, %s USD remain and %s USD are required",
			percent(v.Ratio), signedDollars(v.RemainingCollateralUsd), dollars(required))
	}
	d.Job.Ratio = v.Ratio
	return d.yes(m, "margin ratio %s: %s USD remain and %s USD are required", percent(v.Ratio),
		signedDollars(v.RemainingCollateralUsd), dollars(required))
}

func liquidationOf(p perp.Position) Decision {
	return Decision{Job: job.Job{
		ID: job.LiquidationID(p.PositionKey, p.Changes), Kind: job.Liquidation, Key: p.PositionKey, Account: p.Account,
		Market:     p.Market,
		Collateral: p.CollateralToken, IsLong: p.IsLong, Class: job.ClassLiquidation,
	}}
}

// openPosition begins the decision, and ends it for a position nobody can judge: one that is closed, and one that
// changed after the newest report. The venue would refuse that report; while a feed lags behind the chain this happens
// to every fresh position.
func (m *Moment) openPosition(p perp.Position) (d Decision, open bool) {
	d = liquidationOf(p)
	if p.Status != perp.Active {
		return d.not("it is %s", p.Status), false
	}
	tokens, err := m.tokens(p.Market)
	if err != nil {
		return d.not("%v", err), false
	}
	d.Job.Tokens = tokens
	market, _ := m.Market(p.Market)
	index, err := m.index(market)
	if err != nil {
		return d.not("%v", err), false
	}
	if window := perp.LiquidationWindow(p); !window.Holds(index.Second()) {
		return d.not("the newest report of %s is of second %d, and the position changed in second %d",
			market.IndexToken, index.Second(), window.From), false
	}
	return d, true
}
