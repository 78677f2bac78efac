package perp

import "perpkeeper/pkg/chain"

// impactCurve is how a market charges trades that unbalance it, and rewards those that balance it. Numbers of two go by
// direction: [0] a trade that unbalances, [1] one that balances.
type impactCurve struct {
	factor, exponent [2]chain.Uint
	sides            [2]chain.Uint // what is balanced, in USD, by side
	now              spread
	inTokens         bool // the sides are index tokens at the middle price
	middle           chain.Uint
	virtual          *virtualSides // nil where the index token has no virtual inventory
	maxPositive      chain.Uint    // largest reward, as a factor of the size
	maxOnLiquidation chain.Uint    // largest charge that counts against a position's health, as a factor of its size
}

// spread is the distance of two sides and the potential it has in each direction, so that a pass computes these powers
// once per market.
type spread struct {
	distance  chain.Uint
	potential [2]potential
}

// potential is distance^exponent·factor (PricingUtils.applyImpactFactor). Where the chain's arithmetic reverts, only a
// trade that needs it does.
type potential struct {
	usd     chain.Uint
	reverts bool
}

func (p potential) value() chain.Uint {
	must(!p.reverts)
	return p.usd
}

// virtualSides is the inventory that markets of one index token share, as open interest in USD: one of the sides is
// zero (PositionPricingUtils.getNextOpenInterestForVirtualInventory).
type virtualSides struct {
	sides [2]chain.Uint
	now   spread
}

// impactCurve reads the curve. The positive factors are never larger than the negative ones
// (MarketUtils.getAdjustedPositionImpactFactors, getAdjustedPositionImpactExponentFactors,
// getMaxPositionImpactFactors).
func (l ledger) impactCurve(i interest, p prices) impactCurve {
	c := impactCurve{
		inTokens: l.flag(balanceInTokensKey), middle: p.middle(), maxOnLiquidation: l.term(maxImpactOnLiquidation),
		maxPositive: l.sided(maxImpactFactorKey, true).Min(l.sided(maxImpactFactorKey, false)),
	}
	c.factor[0], c.exponent[0] = l.sided(impactFactorKey, false), l.sided(impactExponentKey, false)
	c.factor[1], c.exponent[1] = l.sided(impactFactorKey, true).Min(c.factor[0]), l.sided(impactExponentKey, true).
		Min(c.exponent[0])
	c.sides = i.balance(c.inTokens, c.middle)
	c.now = c.spread(c.sides)
	if id := l.word(virtualTokenIDKey, l.market.IndexToken.Hash()); !id.IsZero() {
		v := &virtualSides{sides: c.virtualSides(l.virtualInventory(id.Bytes32(), c.inTokens))}
		v.now = c.spread(v.sides)
		c.virtual = v
	}
	return c
}

func (l ledger) virtualInventory(id [32]byte, inTokens bool) chain.Int {
	measure := VirtualInventoryForPositions
	if inTokens {
		measure = VirtualInventoryForPositionsInTokens
	}
	v, _ := l.rows.Get(MarketValueKey(measure, id, noToken, false)).(MarketValue)
	return v.Value
}

// virtualSides turns an inventory into sides: what was virtually sold to the pool stands for shorts, what was bought
// from it for longs.
func (c *impactCurve) virtualSides(inventory chain.Int) (sides [2]chain.Uint) {
	if c.inTokens {
		inventory = inventory.Mul(c.middle.Int())
	}
	sides[index(inventory.Sign() <= 0)] = inventory.Abs()
	return sides
}

func (c *impactCurve) spread(sides [2]chain.Uint) spread {
	s := spread{distance: distance(sides[0], sides[1])}
	for direction := range s.potential {
		p := &s.potential[direction]
		p.reverts = chain.Checked(func() { p.usd = c.potential(s.distance, direction) }) != nil
	}
	return s
}

func (c *impactCurve) potential(distance chain.Uint, direction int) chain.Uint {
	return ApplyFactor(applyExponent(distance, c.exponent[direction]), c.factor[direction])
}

// ofClosing is the impact of closing a whole position and whether that improves the balance.
func (c *impactCurve) ofClosing(p *Position) (usd chain.Int, improves bool) {
	return c.ofTrade(p.IsLong, false, p.SizeInUsd, p.SizeInTokens)
}

// ofTrade is the impact of adding to a side, or taking off it, and whether that improves the balance
// (PositionPricingUtils.getPriceImpactUsd): by the market's own sides or, when that is a charge, by the virtual
// inventory if it charges more.
func (c *impactCurve) ofTrade(isLong, adds bool, sizeUsd, sizeInTokens chain.Uint) (usd chain.Int, improves bool) {
	delta := sizeUsd
	if c.inTokens {
		delta = sizeInTokens.Int().Mul(c.middle.Int()).Uint()
	}
	usd, improves = c.between(c.sides, c.now, isLong, adds, delta)
	if usd.Sign() >= 0 || c.virtual == nil {
		return usd, improves
	}
	sides := c.virtual.sides
	// both sides are lifted by what goes off one of them, so that it cannot go below zero; their distance stays
	if !adds {
		sides = [2]chain.Uint{sides[0].Add(delta), sides[1].Add(delta)}
	}
	if virtual, improvesVirtual := c.between(sides, c.virtual.now, isLong, adds, delta); virtual.Less(usd) {
		return virtual, improvesVirtual
	}
	return usd, improves
}

// between is PositionPricingUtils._getPriceImpactUsd for adding delta to a side or taking it off. A side smaller than
// what is taken off ends at zero (getNextOpenInterestParams). Trades that turn the balance over are rewarded for the
// way to it and charged for the way beyond it.
func (c *impactCurve) between(
	sides [2]chain.Uint, now spread, isLong, adds bool, delta chain.Uint,
) (usd chain.Int, improves bool) {
	next := sides
	if own := &next[index(isLong)]; adds {
		*own = own.Add(delta)
	} else {
		*own = own.Sub(delta.Min(*own))
	}
	after := distance(next[0], next[1])
	improves = after.Less(now.distance)
	long, short := index(true), index(false)
	if sides[short].Less(sides[long]) == next[short].Less(next[long]) {
		direction := index(improves)
		return signedBy(distance(now.potential[direction].value(), c.potential(after, direction)), improves), improves
	}
	reward, charge := now.potential[1].value(), c.potential(after, 0)
	return signedBy(distance(reward, charge), charge.Less(reward)), improves
}

// againstHealth is what an impact takes from a position when its health is judged
// (PositionUtils.isPositionLiquidatable): the reward is capped, the pending impact of former increases added at the
// price that is worse for the trader; a gain counts for nothing, a charge up to its cap.
func (c *impactCurve) againstHealth(p *Position, impact chain.Int, indexPrice Price) chain.Int {
	if impact.Sign() >= 0 {
		impact = impact.Uint().Min(ApplyFactor(p.SizeInUsd, c.maxPositive)).Int()
	}
	price := indexPrice.Max
	if p.PendingImpactAmount.Sign() > 0 {
		price = indexPrice.Min
	}
	impact = impact.Add(p.PendingImpactAmount.Mul(price.Int()))
	if impact.Sign() >= 0 {
		return chain.Int{}
	}
	return impact.Abs().Min(c.mostAgainstHealth(p)).Int().Neg()
}

// mostAgainstHealth is the cap of that charge.
func (c *impactCurve) mostAgainstHealth(p *Position) chain.Uint {
	return ApplyFactor(p.SizeInUsd, c.maxOnLiquidation)
}

// swapCurve is how a market charges swaps that unbalance its pool, and rewards those that balance it
// (MarketUtils.getAdjustedSwapImpactFactors: the positive factor is never larger than the negative one). Factors go by
// direction: [0] a swap that unbalances, [1] one that balances.
type swapCurve struct {
	factor   [2]chain.Uint
	exponent chain.Uint
}

func (l ledger) swapCurve() swapCurve {
	charge := l.sided(swapImpactFactorKey, false)
	return swapCurve{factor: [2]chain.Uint{charge, l.sided(swapImpactFactorKey, true).Min(charge)},
		exponent: l.term(swapImpactExponentKey)}
}

func (c swapCurve) potential(distance chain.Uint, direction int) chain.Uint {
	return ApplyFactor(applyExponent(distance, c.exponent), c.factor[direction])
}

// impact is SwapPricingUtils.getPriceImpactUsd: by the market's own pool or, when that is a charge, by the virtual
// inventory if it charges more. Amounts are valued at middle prices, those of the virtual inventory at this market's.
func (w *swapping) impact(amountIn chain.Uint) (usd chain.Int, improves bool, err error) {
	c, in, out := w.swapCurve(), w.in.middle(), w.out.middle()
	delta := amountIn.Mul(in).Int()
	pool := func(p pooled) chain.Uint { return w.measure(PoolAmount, p.token, false).Value.Uint() }
	usd, improves, err = c.between(pool(w.in).Mul(in), pool(w.out).Mul(out), delta)
	if err != nil || usd.Sign() >= 0 || w.virtualID == noID {
		return usd, improves, err
	}
	virtual, improvesVirtual, err := c.between(w.virtual(w.in.isLong).Mul(in), w.virtual(w.out.isLong).Mul(out), delta)
	if err == nil && virtual.Less(usd) {
		return virtual, improvesVirtual, nil
	}
	return usd, improves, err
}

// between is SwapPricingUtils._getPriceImpactUsd for a value that goes to one side and leaves the other. A swap that
// turns the balance over is rewarded for the way to it and charged for the way beyond it.
func (c swapCurve) between(in, out chain.Uint, delta chain.Int) (usd chain.Int, improves bool, err error) {
	if out.Less(delta.Uint()) {
		return usd, false, refuse("UsdDeltaExceedsPoolValue", delta.Neg(), out)
	}
	nextIn, nextOut := in.Add(delta.Uint()), out.Sub(delta.Uint())
	before, after := distance(in, out), distance(nextIn, nextOut)
	improves = after.Less(before)
	if out.Less(in) == nextOut.Less(nextIn) {
		direction := index(improves)
		return signedBy(distance(c.potential(before, direction), c.potential(after, direction)), improves), improves,
			nil
	}
	reward, charge := c.potential(before, 1), c.potential(after, 0)
	return signedBy(distance(reward, charge), charge.Less(reward)), improves, nil
}
