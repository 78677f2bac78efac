package perp

import "perpkeeper/pkg/chain"

var (
	maxPnlFactorForAdl   = BaseKey("MAX_PNL_FACTOR_FOR_ADL")
	minPnlFactorAfterAdl = BaseKey("MIN_PNL_FACTOR_AFTER_ADL")
)

// Deleveraging is the state of a side of a market against the limits of auto-deleveraging (ADL): what its positions
// have gained together, and what the pool holds to pay it from. USD values have 30 decimals.
type Deleveraging struct {
	// of all positions of the side, at the price that is better for them (MarketUtils.getPnl, maximized)
	PnlUsd  chain.Int
	PoolUsd chain.Uint // at the lower price (MarketUtils.getPoolUsdWithoutPnl)
	// Factor is their quotient with 30 decimals (MarketUtils.getPnlToPoolFactor); Limit is what it may be, and Floor
	// what a deleveraging may bring it down to at most.
	Factor       chain.Int
	Limit, Floor chain.Uint
	// Enabled is from the exchange's last update: only then deleveragings are executed.
	Enabled bool
}

// Exceeded reports whether the side has gained more than it may (MarketUtils.isPnlFactorExceeded with
// MAX_PNL_FACTOR_FOR_ADL).
func (d Deleveraging) Exceeded() bool {
	return d.Factor.Sign() > 0 && d.Limit.Less(d.Factor.Uint())
}

// Excess is how much profit has to be paid out so that the rest is a tenth of the way from the floor to the limit:
// paying out takes from the pool as well, and one that ends below the floor would be refused. It is zero where nothing
// has to be.
func (d Deleveraging) Excess() chain.Uint {
	if d.Limit.Less(d.Floor) || !d.Floor.Less(One) {
		return chain.Uint{}
	}
	return d.payout(d.Floor.Add(d.Limit.Sub(d.Floor).Div(chain.U64(10))))
}

// Surplus is how much profit has to be paid out until the side is no longer above its limit: what is executed after
// that is refused (AdlNotRequired). It is at most the excess.
func (d Deleveraging) Surplus() chain.Uint {
	if !d.Limit.Less(One) {
		return d.Excess()
	}
	return d.payout(d.Limit).Min(d.Excess())
}

// payout is the x with which (pnl - x) / (pool - x) is a target below 1, rounded down; zero for a side that is not
// above its limit.
func (d Deleveraging) payout(target chain.Uint) chain.Uint {
	allowed := ApplyFactor(d.PoolUsd, target)
	if !d.Exceeded() || !target.Less(One) || !allowed.Less(d.PnlUsd.Uint()) {
		return chain.Uint{}
	}
	return d.PnlUsd.Uint().Sub(allowed).MulDiv(One, One.Sub(target))
}

// Deleveraging returns how a side of the market stands.
func (t *Terms) Deleveraging(rows Rows, isLong bool) (d Deleveraging, err error) {
	err = chain.Checked(func() {
		l, market := ledger{rows: rows, market: t.market}, t.market.MarketToken.Hash()
		i := l.interest()
		d.PnlUsd, d.PoolUsd = sidePnl(i, isLong, t.prices.index), l.poolUsd(isLong, t.prices)
		if !d.PoolUsd.IsZero() {
			d.Factor = signedBy(toFactor(d.PnlUsd.Abs(), d.PoolUsd), d.PnlUsd.Sign() >= 0)
		}
		d.Limit = l.word(maxPnlFactorKey, maxPnlFactorForAdl, market, BoolWord(isLong))
		d.Floor = l.word(minPnlFactorAfterAdl, market, BoolWord(isLong))
		d.Enabled = l.measure(AdlEnabled, chain.Address{}, isLong).Value.Sign() != 0
	})
	return d, err
}

// sidePnl is MarketUtils.getPnl, maximized: what all positions of a side have gained at the index price that is better
// for them.
func sidePnl(i interest, isLong bool, price Price) chain.Int {
	usd, tokens := i.usdOf(isLong), i.tokensOf(isLong)
	if usd.IsZero() || tokens.IsZero() {
		return chain.Int{}
	}
	if isLong {
		return tokens.Mul(price.Max).Int().Sub(usd.Int())
	}
	return usd.Int().Sub(tokens.Mul(price.Min).Int())
}

// Pnl is what a position has gained at the index price that is better for it, before any cap
// (PositionUtils.getPositionPnlUsd, maximized).
func (t *Terms) Pnl(p Position) chain.Int {
	if p.IsLong {
		return p.SizeInTokens.Mul(t.prices.index.Max).Int().Sub(p.SizeInUsd.Int())
	}
	return p.SizeInUsd.Int().Sub(p.SizeInTokens.Mul(t.prices.index.Min).Int())
}
