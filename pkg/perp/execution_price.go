package perp

import (
	"errors"

	"perpkeeper/pkg/chain"
)

// ErrTooLargeImpact is given for an order whose price impact is more than its size: the contract refuses it
// (PriceImpactLargerThanOrderSize).
var ErrTooLargeImpact = errors.New("the price impact is larger than the order")

// ExecutionPrice is what an order would be filled at now, price impact included, in USD with 30 decimals per smallest
// unit of the index token. It is what the contract compares with the acceptable price: see [Acceptable]
// (IncreasePositionUtils.getExecutionPrice, DecreasePositionCollateralUtils.getExecutionPrice, v2.2). The position is
// the one a decrease acts on; it says nothing of increases. An order without a size gets the report's price, and no
// price is unacceptable to it.
func (t *Terms) ExecutionPrice(o Order, p Position) (price chain.Uint, err error) {
	var refused error
	err = chain.Checked(func() {
		if o.OrderType.IsIncrease() {
			price, refused = t.increasePrice(o.SizeDeltaUsd, o.IsLong)
		} else {
			price, refused = t.decreasePrice(o.SizeDeltaUsd.Min(p.SizeInUsd), p)
		}
	})
	if err != nil {
		return chain.Uint{}, err
	}
	return price, refused
}

// increasePrice is the size in USD divided by that in tokens, which the impact makes larger or smaller.
func (t *Terms) increasePrice(size chain.Uint, isLong bool) (chain.Uint, error) {
	i := t.prices.index
	price, tokens := i.Min, size.DivUp(i.Min)
	if isLong {
		price, tokens = i.Max, size.Div(i.Max)
	}
	if size.IsZero() {
		return price, nil
	}
	impact, _ := t.impact.ofTrade(isLong, true, size, tokens)
	var amount chain.Int
	if impact.Sign() > 0 {
		amount = t.impact.rewarded(impact, size).Uint().Div(i.Max).Int()
	} else {
		amount = impact.Abs().DivUp(i.Min).Int().Neg()
	}
	if !isLong {
		amount = amount.Neg()
	}
	filled := tokens.Int().Add(amount)
	if filled.Sign() <= 0 {
		return chain.Uint{}, ErrTooLargeImpact
	}
	return size.Div(filled.Uint()), nil
}

// decreasePrice is the report's price moved by the impact, as a share of what is closed
// (BaseOrderUtils.getExecutionPriceForDecrease).
func (t *Terms) decreasePrice(size chain.Uint, p Position) (chain.Uint, error) {
	price := t.prices.index.Max
	if p.IsLong {
		price = t.prices.index.Min
	}
	if size.IsZero() || p.SizeInTokens.IsZero() {
		return price, nil
	}
	tokens := p.SizeInTokens
	switch {
	case size == p.SizeInUsd:
	case p.IsLong:
		tokens = p.SizeInTokens.MulDivUp(size, p.SizeInUsd)
	default:
		tokens = p.SizeInTokens.MulDiv(size, p.SizeInUsd)
	}
	impact, _ := t.impact.ofTrade(p.IsLong, false, size, tokens)
	if impact.Sign() > 0 {
		impact = t.impact.rewarded(impact, size)
	}
	if !p.IsLong {
		impact = impact.Neg()
	}
	if impact.Sign() < 0 && size.Less(impact.Abs()) {
		return chain.Uint{}, ErrTooLargeImpact
	}
	moved := price.Int().Add(signedBy(p.SizeInUsd.MulDiv(impact.Abs(), p.SizeInTokens).Div(size), impact.Sign() >= 0))
	if moved.Sign() < 0 {
		return chain.Uint{}, ErrTooLargeImpact
	}
	return moved.Uint(), nil
}

// rewarded is what of a reward is paid: at most a share of the size (MarketUtils.getCappedPositionImpactUsd).
func (c *impactCurve) rewarded(reward chain.Int, size chain.Uint) chain.Int {
	return reward.Uint().Min(ApplyFactor(size, c.maxPositive)).Int()
}
