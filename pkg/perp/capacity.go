package perp

import "fmt"

var maxOpenInterestKey = BaseKey("MAX_OPEN_INTEREST")

// Capacity says why a market would not take an increase of a size (USD, 30 decimals) on a side: nil where it would
// (MarketUtils.validateOpenInterest, validateReserve, validateOpenInterestReserve, which IncreasePositionUtils asks
// after the increase). A limit that the state does not know is not asked: the contracts would take it for zero and
// refuse everything, which a market that is traded does not do.
func (t *Terms) Capacity(rows Rows, size Uint, isLong bool) (full error) {
	err := Checked(func() {
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
