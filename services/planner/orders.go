package planner

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// dueOrders returns the jobs of the orders that could be executed now: market orders until they expire, waiting orders whose trigger the
// newest report meets.
func (f *finder) dueOrders(w world) (due []job.Job) {
	open := w.openPositions()
	for _, o := range w.orders {
		if !o.Status.Pending() && !(o.Status == perp.Frozen && f.frozenRole) {
			continue
		}
		tokens, complete := w.tokens(orderMarkets(o)...)
		if !complete {
			continue // its market is not in this snapshot yet
		}
		j := job.Job{
			ID: job.OrderID(o.Key, o.Changes), Kind: job.Order, Key: o.Key, Account: o.Account, Market: o.Market,
			Collateral: o.InitialCollateralToken, IsLong: o.IsLong, Tokens: tokens, Frozen: o.Status == perp.Frozen,
			Class: job.ClassTriggerOrder,
		}
		if f.dueOrder(w, o, open[o.PositionKey()], &j) {
			due = append(due, j)
		}
	}
	return due
}

// dueOrder completes the job and reports whether it is due.
func (f *finder) dueOrder(w world, o perp.Order, position perp.Position, j *job.Job) bool {
	window := perp.OrderWindow(o, position, w.expiration())
	if o.OrderType.IsMarket() {
		j.Class, j.BirthMs, j.ExpiresMs = job.ClassMarketOrder, o.Birth.TimeMs, window.To*1000
		j.Evidence.Reason = "market order"
		return w.block.TimeMs <= j.ExpiresMs
	}
	if needsPosition(o.OrderType) && position.Status != perp.Active {
		return false // executing it would revert, for ever if nobody cancels it
	}
	market, _ := w.market(o.Market)
	index, known := w.reports[market.IndexToken]
	if !known || !window.Holds(index.TimeMs/1000) || !perp.Triggered(o, perp.Price{Min: index.Min, Max: index.Max}) {
		return false
	}
	j.BirthMs = f.births.of(j.ID, index.TimeMs)
	j.Evidence.Reason = fmt.Sprintf("index price %s..%s meets trigger %s", index.Min, index.Max, o.TriggerPrice)
	return true
}

func needsPosition(t perp.OrderType) bool {
	return t == perp.LimitDecrease || t == perp.StopLossDecrease
}

// orderMarkets are the markets an execution touches: its own, unless it only swaps, and those on the swap path.
func orderMarkets(o perp.Order) []chain.Address {
	if o.OrderType.IsSwap() {
		return o.SwapPath
	}
	return append([]chain.Address{o.Market}, o.SwapPath...)
}
