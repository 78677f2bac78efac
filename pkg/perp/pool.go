package perp

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

// index numbers a boolean: the sides of a market, the directions of an impact.
func index(is bool) int {
	if is {
		return 1
	}
	return 0
}

// collateral numbers the two tokens of a pool.
const (
	inLongToken = iota
	inShortToken
)

// interest is a market's open interest by side and by collateral token, as the contracts read it: where the long and
// the short token are one, each is half of what is stored, rounded down, because the contracts count it twice
// (MarketUtils.getPoolDivisor).
type interest struct {
	usd, tokens [2][2]chain.Uint
}

// divisor is 2 where the pool has one token, else 1 (MarketUtils.getPoolDivisor).
func (l ledger) divisor() chain.Uint {
	if l.market.LongToken == l.market.ShortToken {
		return chain.U64(2)
	}
	return chain.U64(1)
}

func (l ledger) interest() (i interest) {
	divisor := l.divisor()
	for _, isLong := range []bool{false, true} {
		for c, token := range []chain.Address{inLongToken: l.market.LongToken, inShortToken: l.market.ShortToken} {
			i.usd[index(isLong)][c] = l.measure(OpenInterest, token, isLong).Value.Uint().Div(divisor)
			i.tokens[index(isLong)][c] = l.measure(OpenInterestInTokens, token, isLong).Value.Uint().Div(divisor)
		}
	}
	return i
}

// usdOf is a side's open interest in USD (MarketUtils.getOpenInterest).
func (i interest) usdOf(isLong bool) chain.Uint {
	side := i.usd[index(isLong)]
	return side[inLongToken].Add(side[inShortToken])
}

// tokensOf is a side's open interest in index tokens (MarketUtils.getOpenInterestInTokens).
func (i interest) tokensOf(isLong bool) chain.Uint {
	side := i.tokens[index(isLong)]
	return side[inLongToken].Add(side[inShortToken])
}

// balance is what the venue compares the sides by: USD, or index tokens at the middle price where it is configured so
// (MarketUtils.getOpenInterestForBalance).
func (i interest) balance(inTokens bool, middle chain.Uint) (sides [2]chain.Uint) {
	for _, isLong := range []bool{false, true} {
		sides[index(isLong)] = i.usdOf(isLong)
		if inTokens {
			sides[index(isLong)] = i.tokensOf(isLong).Mul(middle)
		}
	}
	return sides
}

// poolUsd is what the pool holds to pay a side's profits from, at the lower price (MarketUtils.getPoolUsdWithoutPnl,
// not maximized).
func (l ledger) poolUsd(isLong bool, p prices) chain.Uint {
	token, price := l.market.ShortToken, p.short.Min
	if isLong {
		token, price = l.market.LongToken, p.long.Min
	}
	return l.measure(PoolAmount, token, false).Value.Uint().Div(l.divisor()).Mul(price)
}

// profitCap is how a side's profits are cut when they exceed what its pool may pay: each profit is multiplied by
// paid/owed. Owed is zero where nothing is cut.
type profitCap struct{ paid, owed chain.Uint }

// profitCap follows MarketUtils.getPnl with the dearer price, MarketUtils.getCappedPnl with MAX_PNL_FACTOR_FOR_TRADERS,
// and the condition in PositionUtils.getPositionPnlUsd: a cap of nothing cuts nothing.
func (l ledger) profitCap(isLong bool, i interest, p prices) profitCap {
	owed := sidePnl(i, isLong, p.index)
	if owed.Sign() <= 0 {
		return profitCap{}
	}
	factor := l.word(maxPnlFactorKey, maxPnlFactorForTraders, l.market.MarketToken.Hash(), BoolWord(isLong))
	paid := ApplyFactor(l.poolUsd(isLong, p), factor)
	if paid.IsZero() || !paid.Less(owed.Uint()) {
		return profitCap{}
	}
	return profitCap{paid: paid, owed: owed.Uint()}
}

// apply cuts a profit; a loss stays.
func (c profitCap) apply(pnl chain.Int) chain.Int {
	if c.owed.IsZero() || pnl.Sign() <= 0 {
		return pnl
	}
	return pnl.Uint().MulDiv(c.paid, c.owed).Int()
}

var maxOpenInterestKey = BaseKey("MAX_OPEN_INTEREST")

// Capacity reports why a market would not take an increase of a size (USD, 30 decimals) on a side: nil where it would
// (MarketUtils.validateOpenInterest, validateReserve, validateOpenInterestReserve, which IncreasePositionUtils asks
// after the increase). A limit that the state does not know is not asked: the contracts would take it for zero and
// refuse everything, which a market that is traded does not do.
func (t *Terms) Capacity(rows Rows, size chain.Uint, isLong bool) (full error) {
	err := chain.Checked(func() {
		l := ledger{rows: rows, market: t.market}
		i, price := l.interest(), t.prices.index
		interest := i.usdOf(isLong).Add(size)
		reserved := interest
		if isLong {
			reserved = i.tokensOf(true).Add(size.Div(price.Max)).Mul(price.Max)
		}
		pool := l.poolUsd(isLong, t.prices)
		reserve, ofInterest := l.sided(reserveFactorKey, isLong), l.sided(interestReserveFactorKey, isLong)
		switch most := l.sided(maxOpenInterestKey, isLong); {
		case !most.IsZero() && most.Less(interest):
			full = fmt.Errorf("MaxOpenInterestExceeded: %s, and at most %s", interest, most)
		case !reserve.IsZero() && ApplyFactor(pool, reserve).Less(reserved):
			full = fmt.Errorf("InsufficientReserve: %s, and at most %s", reserved, ApplyFactor(pool, reserve))
		case !ofInterest.IsZero() && ApplyFactor(pool, ofInterest).Less(reserved):
			full = fmt.Errorf("InsufficientReserveForOpenInterest: %s, and at most %s", reserved,
				ApplyFactor(pool, ofInterest))
		}
	})
	if err != nil {
		return err
	}
	return full
}
