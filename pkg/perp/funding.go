package perp

import "perpkeeper/pkg/chain"

// noToken is the token of measures that have none.
var noToken chain.Address

// perSizeToFactor is FLOAT_PRECISION_SQRT, and perSizeUnit is one in funding amounts per size: token amounts per USD
// with 15 more decimals (FLOAT_PRECISION · FLOAT_PRECISION_SQRT).
var (
	perSizeToFactor = chain.Pow10(15)
	perSizeUnit     = One.Mul(perSizeToFactor)
)

// funding is what funding does to a market from its last update on.
type funding struct {
	perSecond chain.Uint // the factor that the side that pays owes per second
	longsPay  bool
	// the adaptive factor the venue keeps, positive when longs pay; zero when funding is static or a side is empty
	saved chain.Int
}

// nextFunding is the factor that holds for the seconds since the last update (MarketUtils.getNextFundingAmountPerSize
// and getNextFundingFactorPerSecond), by the rule of the ledger's version. Saved is the adaptive factor as the last
// update left it; middle matters only to a venue that balances tokens.
func (l ledger) nextFunding(i interest, middle chain.Uint, saved chain.Int, seconds chain.Uint) funding {
	if i.isOneSided() {
		if l.version < V22c {
			saved = chain.Int{}
		}
		return funding{saved: saved}
	}
	sides := i.balance(l.flag(balanceInTokensKey), middle)
	long, short := sides[index(true)], sides[index(false)]
	increase := l.term(fundingIncreaseKey)
	gap := distance(long, short)
	if gap.IsZero() && increase.IsZero() {
		return funding{longsPay: true}
	}
	must(!long.Add(short).IsZero()) // UnableToGetFundingFactorEmptyOpenInterest
	skew := toFactor(applyExponent(gap, l.term(fundingExponentKey)), long.Add(short))
	if increase.IsZero() {
		longsPay := short.Less(long)
		most := l.fundingBound(maxFundingKey, longsPay)
		return funding{perSecond: ApplyFactor(skew, l.term(fundingFactorKey)).Min(most), longsPay: longsPay}
	}
	next := l.adapt(saved, skew, long.Cmp(short), increase, seconds)
	payer := next.Sign() >= 0 // before it is bounded; zero counts as the longs
	most := l.fundingBound(maxFundingKey, payer)
	next = boundMagnitude(next, chain.Uint{}, most)
	bounded := boundMagnitude(next, l.fundingBound(minFundingKey, payer), most)
	return funding{perSecond: bounded.Abs(), longsPay: bounded.Sign() > 0, saved: next}
}

// isOneSided reports whether a side is empty: nothing accrues then.
func (i interest) isOneSided() bool { return i.usdOf(true).IsZero() || i.usdOf(false).IsZero() }

// fundingBound is the least or the most that a side pays per second: one for both sides up to v2.2b, and each its own
// since v2.2c, where the other one stays in the store and is dead.
func (l ledger) fundingBound(base chain.Hash, payer bool) chain.Uint {
	if l.version < V22c {
		return l.term(base)
	}
	return l.sided(base, payer)
}

// adapt moves the saved factor: toward the side that is larger while the skew is above the stable threshold or against
// the factor's sign, toward ±1 when it is below the threshold for decreasing. Larger is the sign of long minus short
// open interest.
func (l ledger) adapt(saved chain.Int, skew chain.Uint, larger int, increase, seconds chain.Uint) chain.Int {
	grows := saved.Sign() == 0 || larger != saved.Sign()
	if !grows {
		switch {
		case l.term(stableFundingKey).Less(skew):
			grows = true
		case skew.Less(l.term(decreaseFundingKey)):
			return fade(saved, l.term(fundingDecreaseKey).Mul(seconds))
		}
	}
	if !grows {
		return saved
	}
	rate := ApplyFactor(skew, increase)
	if l.version >= V22c && !skew.IsZero() {
		rate = rate.Max(l.term(minFundingIncreaseKey))
	}
	step := rate.Int().Mul(seconds.Int())
	if larger < 0 {
		step = step.Neg()
	}
	return saved.Add(step)
}

// fade takes from the magnitude of a factor that is not zero, and leaves at least one of it, so that the sign survives.
func fade(saved chain.Int, less chain.Uint) chain.Int {
	left := chain.U64(1)
	if less.Less(saved.Abs()) {
		left = saved.Abs().Sub(less)
	}
	return signedBy(left, saved.Sign() > 0)
}

// boundMagnitude is Calc.boundMagnitude: zero counts as positive, and the upper bound wins over the lower.
func boundMagnitude(v chain.Int, least, most chain.Uint) chain.Int {
	return signedBy(v.Abs().Max(least).Min(most), v.Sign() >= 0)
}

// fundingGrowth is by how much the funding amount per size grows for each side and collateral, over the given seconds
// (MarketUtils.getNextFundingAmountPerSize, updateFundingState). What a pool of one token owes twice is added up, as
// the chain stores it.
func (l ledger) fundingGrowth(f funding, i interest, p prices, seconds chain.Uint) (growth [2][2]chain.Uint) {
	total := i.usdOf(f.longsPay)
	if total.IsZero() {
		return growth
	}
	usd := ApplyFactor(total, seconds.Mul(f.perSecond)).Div(l.divisor())
	payers := index(f.longsPay)
	for c, price := range []chain.Uint{inLongToken: p.long.Max, inShortToken: p.short.Max} {
		own := i.usd[payers][c]
		growth[payers][c] = perSizeDelta(usd.MulDiv(own, total), own, price)
	}
	if l.market.LongToken == l.market.ShortToken {
		both := growth[payers][inLongToken].Add(growth[payers][inShortToken])
		growth[payers] = [2]chain.Uint{both, both}
	}
	return growth
}

// perSizeDelta is MarketUtils.getFundingAmountPerSizeDelta, rounded up as for fees.
func perSizeDelta(usd, openInterest, price chain.Uint) chain.Uint {
	if usd.IsZero() || openInterest.IsZero() {
		return chain.Uint{}
	}
	return usd.MulDivUp(perSizeUnit, openInterest).DivUp(price)
}

// foldedFunding is the adaptive funding factor, which no event carries, after a Funding event, whose measure v is about
// to replace the former one, by the rule of the handler that spoke. The open interest still is what it was before the
// transaction, because the exchange accrues first. Known is false while the market is not.
//
// The event shows the magnitude wherever it is above the minimum, and in a market with an empty side since v2.2c. That
// makes right what a fold that began later, or a silent write to the store, left wrong. Below the minimum the fold is
// exact too, but for one combination: a venue that balances tokens with a funding exponent other than one needs the
// price of that moment, which no row has; the average price of the open interest stands in for it.
func foldedFunding(rows Rows, v MarketValue, version Version) (saved MarketValue, known bool) {
	market, known := rows.Get(RowKey{Markets, v.Scope}).(Market)
	if !known {
		return saved, false
	}
	l := ledger{rows: rows, market: market, version: version}
	saved = MarketValue{Measure: SavedFundingFactorPerSecond, Scope: v.Scope, Stamp: v.Stamp}
	i := l.interest()
	// What reverts here cannot have reverted on chain: part of the state is unknown, and the event is all there is to
	// go by.
	_ = chain.Checked(func() {
		before := l.measure(FundingFactorPerSecond, noToken, false)
		saved.Value = l.nextFunding(i, i.averagePrice(), l.savedFunding(before.Stamp),
			secondsSince(before, v.Stamp.Seconds())).saved
	})
	if l.showsSaved(i, saved.Value, v.Value.Uint()) {
		longsPay := saved.Value.Sign() > 0 || saved.Value.Sign() == 0 && i.usdOf(false).Less(i.usdOf(true))
		saved.Value = signedBy(v.Value.Uint(), longsPay)
	}
	return saved, true
}

// fundingWords names the parameters that [foldedFunding] reads of a market, by the rules of any version.
func fundingWords(market chain.Hash) []RowKey {
	keys := []RowKey{{Parameters, balanceInTokensKey}}
	for _, base := range []chain.Hash{fundingIncreaseKey, fundingExponentKey, fundingFactorKey, stableFundingKey,
		decreaseFundingKey, fundingDecreaseKey, minFundingIncreaseKey, savedFundingKey, maxFundingKey, minFundingKey} {
		keys = append(keys, RowKey{Parameters, argued(base, market)})
	}
	for _, base := range []chain.Hash{maxFundingKey, minFundingKey} {
		for _, side := range []bool{true, false} {
			keys = append(keys, RowKey{Parameters, argued(base, market, BoolWord(side))})
		}
	}
	return keys
}

// showsSaved reports whether what a Funding event shows is the magnitude of the saved factor, which was folded to
// saved: nothing has raised it to a minimum.
func (l ledger) showsSaved(i interest, saved chain.Int, shown chain.Uint) bool {
	if i.isOneSided() {
		return l.version >= V22c
	}
	adaptive := !l.term(fundingIncreaseKey).IsZero()
	return adaptive && l.fundingBound(minFundingKey, saved.Sign() >= 0).Less(shown)
}

// savedFunding is the adaptive factor as the last update left it: as folded, or as a call saw it in that block or
// later.
func (l ledger) savedFunding(updated Stamp) chain.Int {
	seen, called := l.rows.Get(RowKey{Parameters, argued(savedFundingKey, l.market.MarketToken.Hash())}).(Parameter)
	if called && seen.Stamp.Block >= updated.Block {
		return chain.IntFromWord(seen.Value)
	}
	return l.measure(SavedFundingFactorPerSecond, noToken, false).Value
}

// averagePrice is the price at which the open interest was opened, zero when there is none.
func (i interest) averagePrice() chain.Uint {
	tokens := i.tokensOf(true).Add(i.tokensOf(false))
	if tokens.IsZero() {
		return chain.Uint{}
	}
	return i.usdOf(true).Add(i.usdOf(false)).Div(tokens)
}
