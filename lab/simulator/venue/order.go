package venue

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// order executes, cancels or freezes an order.
func (x *execution) order() *revert {
	o, known := row[perp.Order](x.state, perp.Orders, x.key)
	switch {
	case !known || o.Status.Final():
		return gone(x.kind, x.key)
	case o.Status == perp.Frozen || o.OrderType == perp.LimitSwap:
		return refuse(gasOrderGone, "InvalidKeeperForFrozenOrder(address)", chain.Hash{})
	case o.OrderType.IsSwap():
		return x.swap(o)
	}
	market, index, why := x.market(o.Market)
	if why != nil {
		return why
	}
	if !perp.Triggered(o, index) {
		return refuse(gasOrderEarly, "InvalidOrderPrices(uint256,uint256,uint256,uint256)",
			index.Min.Bytes32(), index.Max.Bytes32(), o.TriggerPrice.Bytes32(), number(uint64(o.OrderType)))
	}
	p, _ := row[perp.Position](x.state, perp.Positions, o.PositionKey())
	isEmpty := !o.OrderType.IsIncrease() && p.Status != perp.Active
	if isEmpty && !o.OrderType.IsMarket() {
		return refuse(gasOrderGone, "EmptyPosition()")
	}
	if why := x.within(perp.OrderWindow(o, p, expirationSeconds), o.UpdatedAtTime); why != nil {
		return why
	}
	switch {
	case isEmpty:
		x.stop(o, selector("EmptyPosition()"))
	case !perp.Acceptable(o, index):
		x.stop(o, unacceptable)
	default:
		x.fill(o, p, market, index)
	}
	return nil
}

// unacceptable is the cause of a cancellation or freezing; the contracts put the two prices behind its selector.
var unacceptable = append(selector("OrderNotFulfillableAtAcceptablePrice(uint256,uint256)"), make([]byte, 64)...)

// swap executes a market swap, which touches no position.
func (x *execution) swap(o perp.Order) *revert {
	for _, m := range o.SwapPath {
		if _, _, why := x.market(m); why != nil {
			return why
		}
	}
	if why := x.within(perp.OrderWindow(o, perp.Position{}, expirationSeconds), o.UpdatedAtTime); why != nil {
		return why
	}
	x.executed(o.Key)
	return nil
}

// stop cancels a market order and freezes any other.
func (x *execution) stop(o perp.Order, cause []byte) {
	status := perp.Frozen
	if o.OrderType.IsMarket() {
		status = perp.Cancelled
	}
	x.emit(0, func(at perp.Stamp) perp.Event {
		return perp.OrderEnded{Key: o.Key, Status: status, ReasonBytes: cause, Stamp: at}
	})
}

func (x *execution) executed(order chain.Hash) {
	x.emit(0, func(at perp.Stamp) perp.Event { return perp.OrderEnded{Key: order, Status: perp.Executed, Stamp: at} })
}

// fill changes the position of an order at the index price.
func (x *execution) fill(o perp.Order, p perp.Position, m perp.Market, index perp.Price) {
	switch {
	case o.SizeDeltaUsd.IsZero():
	case o.OrderType.IsIncrease():
		at := index.Min
		if o.IsLong {
			at = index.Max
		}
		by := perp.Position{
			PositionKey: o.PositionKey(), Account: o.Account, Market: m.MarketToken,
			CollateralToken: o.InitialCollateralToken, IsLong: o.IsLong,
			SizeInUsd: o.SizeDeltaUsd, SizeInTokens: o.SizeDeltaUsd.Div(at),
			CollateralAmount: o.InitialCollateralDeltaAmount,
		}
		x.emit(0, func(at perp.Stamp) perp.Event { return grown(x.state, by, o.Key, at) })
	default:
		x.decrease(p, o.Key, o.OrderType, o.SizeDeltaUsd.Min(p.SizeInUsd))
	}
	x.executed(o.Key)
}

// decrease shrinks a position; its collateral stays until it is closed. The log stands behind that of its fees.
func (x *execution) decrease(p perp.Position, order chain.Hash, why perp.OrderType, by chain.Uint) {
	next := p
	next.SizeInUsd = p.SizeInUsd.Sub(by)
	next.SizeInTokens = p.SizeInTokens.MulDiv(next.SizeInUsd, p.SizeInUsd)
	if next.SizeInUsd.IsZero() {
		next.CollateralAmount = chain.Uint{}
	}
	x.emit(1, func(at perp.Stamp) perp.Event {
		next.DecreasedAtTime, next.Stamp = chain.U64(at.Seconds()), at
		return perp.PositionDecreased{Position: next, OrderKey: order, OrderType: why, SizeDeltaUsd: by}
	})
}

// liquidation closes a position of which too little remains.
func (x *execution) liquidation() *revert {
	p, known := row[perp.Position](x.state, perp.Positions, x.key)
	if !known || p.Status != perp.Active {
		return gone(x.kind, x.key)
	}
	if why := x.within(perp.LiquidationWindow(p), chain.Uint{}); why != nil {
		return why
	}
	_, index, why := x.market(p.Market)
	if why != nil {
		return why
	}
	collateral, why := x.price(p.CollateralToken)
	if why != nil {
		return why
	}
	remaining, required := remains(p, index, collateral),
		minCollateralUsd.Max(perp.ApplyFactor(p.SizeInUsd, minCollateralFactor))
	if remaining.Sign() > 0 && !remaining.Less(required.Int()) {
		return healthy(remaining, required)
	}
	stamp := number(p.Changes)
	order := chain.Keccak256([]byte("liquidation"), p.PositionKey[:], stamp[:])
	x.decrease(p, order, perp.Liquidation, p.SizeInUsd)
	x.executed(order)
	return nil
}

// remains is collateral and profit of a position at the worse prices.
func remains(p perp.Position, index, collateral perp.Price) chain.Int {
	has, size := p.CollateralAmount.Mul(collateral.Min).Int(), p.SizeInUsd.Int()
	if p.IsLong {
		return has.Add(p.SizeInTokens.Mul(index.Min).Int()).Sub(size)
	}
	return has.Add(size).Sub(p.SizeInTokens.Mul(index.Max).Int())
}
