package perp

// swapCurve is how a market charges swaps that unbalance its pool, and rewards those that balance it
// (MarketUtils.getAdjustedSwapImpactFactors: the positive factor is never larger than the negative one). Factors go by
// direction: [0] a swap that unbalances, [1] one that balances.
type swapCurve struct {
	factor   [2]Uint
	exponent Uint
}

func (l ledger) swapCurve() swapCurve {
	charge := l.sided(swapImpactFactorKey, false)
	return swapCurve{factor: [2]Uint{charge, l.sided(swapImpactFactorKey, true).Min(charge)},
		exponent: l.term(swapImpactExponentKey)}
}

func (c swapCurve) potential(distance Uint, direction int) Uint {
	return ApplyFactor(applyExponent(distance, c.exponent), c.factor[direction])
}

// impact is SwapPricingUtils.getPriceImpactUsd: by the market's own pool or, when that is a charge, by the virtual
// inventory if it charges more. Amounts are valued at middle prices, those of the virtual inventory at this market's.
func (w *swapping) impact(amountIn Uint) (usd Int, improves bool, err error) {
	c, in, out := w.swapCurve(), w.in.middle(), w.out.middle()
	delta := amountIn.Mul(in).Int()
	pool := func(p pooled) Uint { return w.measure(PoolAmount, p.token, false).Value.Uint() }
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
func (c swapCurve) between(in, out Uint, delta Int) (usd Int, improves bool, err error) {
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
