package perp

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

// Terms is what one market asks of every position in it at one moment: prices, parameters, and borrowing and funding
// accrued to that moment. Once it is there, judging a position is arithmetic alone. It is never changed and may be
// shared.
type Terms struct {
	market              Market
	prices              prices
	fireRatio           chain.Uint
	minCollateralUsd    chain.Uint
	minCollateralFactor chain.Uint
	feeFactor           [2]chain.Uint // [1] where the close improves the balance
	impact              impactCurve
	sides               [2]side
	// The most that fees, impact and the collateral that has to remain may take from a position: as a factor of its
	// size, and beside it.
	mostPerUsd, mostInUsd chain.Uint
}

// prices are those of a market's three tokens, of which some may be one.
type prices struct{ index, long, short Price }

// middle is the index token's middle price (Price.midPrice).
func (p prices) middle() chain.Uint { return p.index.Max.Add(p.index.Min).Div(chain.U64(2)) }

// side is one side of a market, accrued.
type side struct {
	borrowing        borrowing
	fundingPerSize   [2]chain.Uint // by collateral
	fundingPerSecond [2]chain.Uint
	profits          profitCap
}

// pledge is a position's collateral token: which of the pool's tokens it is, and its price.
type pledge struct {
	token int
	price Price
}

// newTerms reads a market's terms, as they are for an execution at c.Time.
func newTerms(token chain.Address, c Circumstances) (*Terms, error) {
	market, known := c.Rows.Get(RowKey{Markets, token.Hash()}).(Market)
	if !known {
		return nil, fmt.Errorf("market %s is unknown", token)
	}
	t := &Terms{market: market, fireRatio: c.FireRatio.Max(One)}
	for _, want := range []struct {
		token chain.Address
		price *Price
	}{{market.IndexToken, &t.prices.index}, {market.LongToken, &t.prices.long}, {market.ShortToken, &t.prices.short}} {
		price, known := c.Prices[want.token]
		if !known || price.Min.IsZero() || price.Max.Less(price.Min) {
			return nil, fmt.Errorf("no price of %s", want.token)
		}
		*want.price = price
	}
	l := ledger{rows: c.Rows, market: market, version: versionInForce(c.Rows)}
	if err := chain.Checked(func() { t.read(l, c.Time) }); err != nil {
		return nil, fmt.Errorf("accruing market %s: %w", token, err)
	}
	return t, nil
}

func (t *Terms) read(l ledger, now uint64) {
	i := l.interest()
	t.minCollateralUsd, t.minCollateralFactor = l.word(minCollateralUsdKey), l.term(minCollateralFactorKey)
	t.feeFactor = [2]chain.Uint{l.sided(positionFeeFactorKey, false), l.sided(positionFeeFactorKey, true)}
	t.impact = l.impactCurve(i, t.prices)
	t.readFunding(l, i, now)
	for _, isLong := range []bool{false, true} {
		s := &t.sides[index(isLong)]
		s.borrowing = l.borrowing(isLong, i, t.prices, now)
		s.profits = l.profitCap(isLong, i, t.prices)
	}
	t.mostPerUsd = t.feeFactor[0].Max(t.feeFactor[1]).Add(t.impact.maxOnLiquidation).
		Add(t.minCollateralFactor.MulDivUp(t.fireRatio, One))
	t.mostInUsd = t.minCollateralUsd.MulDivUp(t.fireRatio, One)
}

// readFunding accrues both sides' funding, and bounds its growth from here on: adaptive funding may reach its maximum
// and turn to either side.
func (t *Terms) readFunding(l ledger, i interest, now uint64) {
	last := l.measure(FundingFactorPerSecond, noToken, false)
	seconds := secondsSince(last, now)
	f := l.nextFunding(i, t.prices.middle(), l.savedFunding(last.Stamp), seconds)
	growth := l.fundingGrowth(f, i, t.prices, seconds)
	adaptive := !l.term(fundingIncreaseKey).IsZero()
	for _, isLong := range []bool{false, true} {
		s := &t.sides[index(isLong)]
		perSecond := chain.Uint{}
		switch {
		case adaptive:
			perSecond = l.fundingBound(maxFundingKey, isLong)
		case f.longsPay == isLong:
			perSecond = f.perSecond
		}
		for c, token := range []chain.Address{inLongToken: t.market.LongToken, inShortToken: t.market.ShortToken} {
			s.fundingPerSize[c] = l.measure(FundingFeeAmountPerSize, token, isLong).Value.Uint().
				Add(growth[index(isLong)][c])
			s.fundingPerSecond[c] = perSecond.MulDivUp(chain.Pow10(15), t.pledgeOf(c).price.Max)
		}
	}
}

func (t *Terms) pledgeOf(token int) pledge {
	if token == inLongToken {
		return pledge{token, t.prices.long}
	}
	return pledge{token, t.prices.short}
}

// pledge finds a position's collateral token (MarketUtils.getCachedTokenPrice).
func (t *Terms) pledge(token chain.Address) (pledge, error) {
	switch token {
	case t.market.LongToken:
		return t.pledgeOf(inLongToken), nil
	case t.market.ShortToken:
		return t.pledgeOf(inShortToken), nil
	}
	return pledge{}, fmt.Errorf("%s is no collateral of market %s", token, t.market.MarketToken)
}

// Market is whose terms these are.
func (t *Terms) Market() Market { return t.market }

// MinCollateral is what must remain of a position: in USD, and as a 30-decimal factor of its size. The larger counts.
func (t *Terms) MinCollateral() (usd, factor chain.Uint) {
	return t.minCollateralUsd, t.minCollateralFactor
}

// FeeFactor is the position fee as a 30-decimal factor of the size, for a close that improves the balance or does not.
func (t *Terms) FeeFactor(improves bool) chain.Uint { return t.feeFactor[index(improves)] }

// MaxImpactFactor is the largest price impact that counts against a position, as a 30-decimal factor of its size.
func (t *Terms) MaxImpactFactor() chain.Uint { return t.impact.maxOnLiquidation }

// Borrowing is a side's cumulative factor at the terms' moment, and its growth per second at the terms' prices and open
// interest.
func (t *Terms) Borrowing(isLong bool) (factor, perSecond chain.Uint) {
	b := t.sides[index(isLong)].borrowing
	return b.factor, b.perSecond
}

// Funding is a side's funding fee amount per size for a collateral token at the terms' moment, and a bound of its
// growth per second at the terms' prices and open interest; each accrual may round it up by 3 more. A token that is no
// collateral has none.
func (t *Terms) Funding(isLong bool, collateral chain.Address) (perSize, perSecond chain.Uint) {
	own, err := t.pledge(collateral)
	if err != nil {
		return chain.Uint{}, chain.Uint{}
	}
	s := &t.sides[index(isLong)]
	return s.fundingPerSize[own.token], s.fundingPerSecond[own.token]
}

// Price is what the terms take for one of the market's tokens.
func (t *Terms) Price(token chain.Address) (price Price, known bool) {
	switch token {
	case t.market.IndexToken:
		return t.prices.index, true
	case t.market.LongToken:
		return t.prices.long, true
	case t.market.ShortToken:
		return t.prices.short, true
	}
	return Price{}, false
}
