package perp

import "perpkeeper/pkg/chain"

// Triggered reports whether an order may execute at an index price (BaseOrderUtils.validateOrderTriggerPrice). Market
// orders and swaps have no trigger.
//
//	                 long            short
//	LimitIncrease    max <= trigger  min >= trigger
//	StopIncrease     max >= trigger  min <= trigger
//	LimitDecrease    min >= trigger  max <= trigger
//	StopLossDecrease min <= trigger  max >= trigger
func Triggered(o Order, index Price) bool {
	if o.OrderType.IsMarket() || o.OrderType.IsSwap() {
		return true
	}
	price := index.Min
	if o.OrderType.IsIncrease() == o.IsLong {
		price = index.Max
	}
	longWaitsForFall := o.OrderType == LimitIncrease || o.OrderType == StopLossDecrease
	if longWaitsForFall == o.IsLong {
		return !o.TriggerPrice.Less(price)
	}
	return !price.Less(o.TriggerPrice)
}

// Window is which report times an execution accepts, in Unix seconds, both ends included. To is 0 where there is no
// end.
type Window struct{ From, To uint64 }

// Holds reports whether a report of that second is accepted.
func (w Window) Holds(seconds uint64) bool {
	return seconds >= w.From && (w.To == 0 || seconds <= w.To)
}

// OrderWindow is the window of an order: market orders take reports from their last change until expiration seconds
// later; waiting orders never expire, and the protective ones need a report not older than the position's last
// increase.
func OrderWindow(o Order, position Position, expiration uint64) Window {
	updated := clampSeconds(o.UpdatedAtTime)
	if o.OrderType.IsMarket() {
		return Window{From: updated, To: updated + expiration}
	}
	from := max(updated, clampSeconds(o.ValidFromTime))
	if o.OrderType == LimitDecrease || o.OrderType == StopLossDecrease {
		from = max(from, clampSeconds(position.IncreasedAtTime))
	}
	return Window{From: from}
}

// RequestWindow is the window of a deposit, withdrawal or shift.
func RequestWindow(r Request, expiration uint64) Window {
	updated := clampSeconds(r.UpdatedAtTime)
	return Window{From: updated, To: updated + expiration}
}

// LiquidationWindow is the window of a position's liquidation.
func LiquidationWindow(p Position) Window {
	return Window{From: max(clampSeconds(p.IncreasedAtTime), clampSeconds(p.DecreasedAtTime))}
}

// clampSeconds reads a time; one beyond 63 bits lies in no future anybody waits for.
func clampSeconds(t chain.Uint) uint64 {
	if s, fits := t.Uint64(); fits {
		return min(s, 1<<62)
	}
	return 1 << 62
}

// Acceptable reports whether a price is within an order's acceptable price. The contract compares the execution price
// with it, see [Terms.ExecutionPrice]; an index price alone is one without any impact. Swaps have none
// (BaseOrderUtils.getExecutionPriceForIncrease and …ForDecrease).
//
//	          long                short
//	increase  max <= acceptable   min >= acceptable
//	decrease  min >= acceptable   max <= acceptable
func Acceptable(o Order, index Price) bool {
	if o.OrderType.IsSwap() {
		return true
	}
	if o.OrderType.IsIncrease() == o.IsLong {
		return !o.AcceptablePrice.Less(index.Max)
	}
	return !index.Min.Less(o.AcceptablePrice)
}

// SideInterest is a side's open interest in USD (MarketUtils.getOpenInterest).
func SideInterest(rows Rows, market Market, isLong bool) chain.Uint {
	return ledger{rows: rows, market: market}.interest().usdOf(isLong)
}
