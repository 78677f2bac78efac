package due

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Order decides about executing an order. The position is the one the order would act on; the zero position where there
// is none.
func (m *Moment) Order(o perp.Order, position perp.Position) Decision {
	d := Decision{Job: job.Job{
		ID: job.OrderID(o.Key, o.Changes), Kind: job.Order, Key: o.Key, Account: o.Account, Market: o.Market,
		Collateral: o.InitialCollateralToken, IsLong: o.IsLong, Frozen: needsFrozenRole(o),
		Class: job.ClassTriggerOrder,
	}}
	switch {
	case o.Status == perp.Frozen && !m.Rules.FrozenRole:
		return d.not("it is frozen (%s), and this keeper does not hold the frozen-order role", because(o.Reason))
	case !o.Status.Pending() && o.Status != perp.Frozen:
		return d.not("it is %s", o.Status)
	case needsFrozenRole(o) && !m.Rules.FrozenRole:
		return d.not("it is a limit swap, and this keeper does not hold the frozen-order role, which the venue asks " +
			"for: executing it would revert")
	}
	tokens, err := m.tokens(orderMarkets(o)...)
	if err != nil {
		return d.not("%v", err)
	}
	d.Job.Tokens = tokens
	if o.OrderType.IsMarket() {
		return m.marketOrder(o, d)
	}
	return m.waitingOrder(o, position, d)
}

// marketOrder is due from its creation until the venue refuses every report of it.
func (m *Moment) marketOrder(o perp.Order, d Decision) Decision {
	window := perp.OrderWindow(o, perp.Position{}, m.expiration())
	if m.Block.TimeMs > window.To*1000 {
		return d.late(window.To)
	}
	if why := m.disabled(orderMarkets(o)); why != nil {
		return d.not("%v: the venue would cancel the order", why)
	}
	d.Job.Class, d.Job.DueSinceMs, d.Job.ExpiresMs = job.ClassMarketOrder, o.Birth.TimeMs, window.To*1000
	return d.yes(m, "market order")
}

// waitingOrder is due while the newest report meets its trigger. One whose price is not acceptable, or whose swap gives
// too little, would be frozen, and waits instead. What a decrease pays out is not worked out here: the sender has the
// contracts rehearse it.
func (m *Moment) waitingOrder(o perp.Order, position perp.Position, d Decision) Decision {
	if needsPosition(o.OrderType) && position.Status != perp.Active {
		return d.not("its position is not open: executing it would revert")
	}
	if o.OrderType.IsSwap() {
		return m.limitSwap(o, d)
	}
	market, _ := m.Market(o.Market)
	if why := m.disabled(orderMarkets(o)); why != nil {
		return d.not("%v: the venue would freeze the order", why)
	}
	index, err := m.index(market)
	if err != nil {
		return d.not("%v", err)
	}
	if window := perp.OrderWindow(o, position, m.expiration()); !window.Holds(index.Second()) {
		return d.not("it takes reports from second %d on, and the newest of %s is of second %d", window.From,
			market.IndexToken, index.Second())
	}
	if !perp.Triggered(o, index.Price) {
		return d.not("the price of %s is %s to %s and does not meet the trigger %s", market.IndexToken, index.Min,
			index.Max, o.TriggerPrice)
	}
	if why := m.unfillable(o, position, index); why != nil {
		return d.not("the venue would freeze the order: %v", why)
	}
	if o.OrderType.IsIncrease() && (len(o.SwapPath) > 0 || !o.MinOutputAmount.IsZero()) {
		if err := m.collateral(o, market, d.Job.Tokens); err != nil {
			return d.not("%v", err)
		}
	}
	return d.yes(m, "index price %s..%s meets trigger %s", index.Min, index.Max, o.TriggerPrice)
}

// needsFrozenRole reports whether the venue lets only holders of the frozen-order role execute an order: besides frozen
// ones that is every limit swap (OrderHandler.executeOrder).
func needsFrozenRole(o perp.Order) bool {
	return o.Status == perp.Frozen || o.OrderType == perp.LimitSwap
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

func because(reason string) string {
	if reason == "" {
		return "no reason given"
	}
	return reason
}
