package perp

import "perpkeeper/pkg/chain"

// borrowing is a side's cumulative borrowing factor at a moment, and its growth per second from there on.
type borrowing struct{ factor, perSecond chain.Uint }

// borrowing accrues a side's factor to now (MarketUtils.getNextCumulativeBorrowingFactor).
func (l ledger) borrowing(isLong bool, i interest, p prices, now uint64) borrowing {
	stored := l.measure(CumulativeBorrowingFactor, noToken, isLong)
	perSecond := l.borrowingPerSecond(isLong, i, p)
	return borrowing{factor: stored.Value.Uint().Add(secondsSince(stored, now).Mul(perSecond)), perSecond: perSecond}
}

// borrowingPerSecond is MarketUtils.getBorrowingFactorPerSecond. Where the market has no borrowing parameter at all
// nothing is charged and the pool is not looked at; the contract, whose markets all have some, would refuse an empty
// pool even then.
func (l ledger) borrowingPerSecond(isLong bool, i interest, p prices) chain.Uint {
	reserved := i.usdOf(isLong)
	if isLong {
		reserved = i.tokensOf(true).Mul(p.index.Max)
	}
	optimal, factor := l.sided(optimalUsageFactorKey, isLong), l.sided(borrowingFactorKey, isLong)
	if reserved.IsZero() || optimal.IsZero() && factor.IsZero() || l.isSparedSide(isLong, i, p) {
		return chain.Uint{}
	}
	pool := l.poolUsd(isLong, p)
	must(!pool.IsZero()) // UnableToGetBorrowingFactorEmptyPoolUsd
	if !optimal.IsZero() {
		return l.kinkedBorrowing(isLong, reserved, pool, optimal)
	}
	return ApplyFactor(toFactor(applyExponent(reserved, l.sided(borrowingExponentKey, isLong)), pool), factor)
}

// isSparedSide reports whether a side pays no borrowing because it is the smaller one
// (SKIP_BORROWING_FEE_FOR_SMALLER_SIDE). Equal sides both pay.
func (l ledger) isSparedSide(isLong bool, i interest, p prices) bool {
	if !l.flag(skipSmallerSideKey) {
		return false
	}
	sides := i.balance(l.flag(balanceInTokensKey), p.middle())
	return sides[index(isLong)].Less(sides[index(!isLong)])
}

// kinkedBorrowing is MarketUtils.getKinkBorrowingFactor: one slope up to the optimal usage, a steeper one above it.
func (l ledger) kinkedBorrowing(isLong bool, reserved, pool, optimal chain.Uint) chain.Uint {
	usage := toFactor(reserved, ApplyFactor(pool, l.sided(interestReserveFactorKey, isLong)))
	base := l.sided(baseBorrowingFactorKey, isLong)
	perSecond := ApplyFactor(usage, base)
	if !optimal.Less(usage) || !optimal.Less(One) {
		return perSecond
	}
	above := l.sided(aboveOptimalFactorKey, isLong)
	return perSecond.Add(above.Sub(above.Min(base)).Mul(usage.Sub(optimal)).Div(One.Sub(optimal)))
}
