package perp

import (
	"bytes"
	"fmt"

	"perpkeeper/pkg/chain"
)

// One is 100 % as a factor with 30 decimals (Precision.FLOAT_PRECISION).
var One = Pow10(30)

// Price is what a report says of one token: USD with 30 decimals per smallest unit.
type Price struct{ Min, Max Uint }

// Rows looks rows up: a [State] is one.
type Rows interface {
	// Get returns the row, or nil when there is none.
	Get(RowKey) Row
}

// Circumstances is all a verdict depends on besides the position itself.
type Circumstances struct {
	Rows   Rows
	Prices map[chain.Address]Price
	// FireRatio is the venue's threshold as a factor of the required collateral: [One] is the rule of GMX; a venue that liquidates below
	// 110 % has 1.1·10^30. Less than One counts as One.
	FireRatio Uint
}

// Verdict is what the venue's own formula says of a position. USD values have 30 decimals.
type Verdict struct {
	RemainingCollateralUsd      Int
	MinCollateralUsd            Uint
	MinCollateralUsdForLeverage Uint
	Liquidatable                bool
	// Ratio is remaining over required collateral as a factor: the margin ratio of LIQ-5. It is 0 when nothing remains, and the largest number
	// when something remains and nothing is required.
	Ratio Uint
}

// Judge applies the liquidation rule (PositionUtils.isPositionLiquidatable) in the venue's own integers. Covered are collateral, profit,
// the position fee, and the borrowing and funding fees stored on chain; not covered are accrual since the last update, price impact and the
// cap on profits. It fails for a closed position, when a market or price is missing, or where the contract's arithmetic would revert.
func Judge(p Position, c Circumstances) (v Verdict, err error) {
	if p.SizeInUsd.IsZero() {
		return v, fmt.Errorf("judging position %s: it is closed", p.PositionKey)
	}
	market, ok := c.Rows.Get(RowKey{Markets, p.Market.Hash()}).(Market)
	if !ok {
		return v, fmt.Errorf("judging position %s: market %s is unknown", p.PositionKey, p.Market)
	}
	index, known := c.Prices[market.IndexToken]
	if !known || index.Min.IsZero() || index.Max.Less(index.Min) {
		return v, fmt.Errorf("judging position %s: no price of %s", p.PositionKey, market.IndexToken)
	}
	collateral, known := c.Prices[p.CollateralToken]
	if !known || collateral.Min.IsZero() {
		return v, fmt.Errorf("judging position %s: no price of %s", p.PositionKey, p.CollateralToken)
	}
	r := risk{position: p, market: market, rows: c.Rows, index: index, collateral: collateral}
	err = Checked(func() { v = r.verdict(c.FireRatio) })
	if err != nil {
		err = fmt.Errorf("judging position %s: %w", p.PositionKey, err)
	}
	return v, err
}

type risk struct {
	position          Position
	market            Market
	rows              Rows
	index, collateral Price
}

func (r risk) verdict(fireRatio Uint) (v Verdict) {
	v.RemainingCollateralUsd = r.remaining()
	v.MinCollateralUsd = r.parameter(minCollateralUsd)
	factor := r.parameter(argued(minCollateralFactor, r.position.Market.Hash()))
	v.MinCollateralUsdForLeverage = ApplyFactor(r.position.SizeInUsd, factor)

	required := v.MinCollateralUsd.Max(v.MinCollateralUsdForLeverage)
	threshold := required.Max(ApplyFactor(required, fireRatio))
	v.Liquidatable = v.RemainingCollateralUsd.Sign() <= 0 || v.RemainingCollateralUsd.Less(threshold.Int())
	v.Ratio = marginRatio(v.RemainingCollateralUsd, required)
	return v
}

func marginRatio(remaining Int, required Uint) Uint {
	switch {
	case remaining.Sign() <= 0:
		return Uint{}
	case required.IsZero():
		return largest
	}
	return remaining.Uint().MulDiv(One, required)
}

func (r risk) remaining() Int {
	collateralUsd := r.position.CollateralAmount.Mul(r.collateral.Min)
	costUsd := r.feeAmount().Mul(r.collateral.Min)
	return collateralUsd.Int().Add(r.pnl()).Sub(costUsd.Int())
}

// pnl is the profit at the price a close would get.
func (r risk) pnl() Int {
	p := r.position
	if p.IsLong {
		return p.SizeInTokens.Mul(r.index.Min).Int().Sub(p.SizeInUsd.Int())
	}
	return p.SizeInUsd.Int().Sub(p.SizeInTokens.Mul(r.index.Max).Int())
}

// feeAmount is position, borrowing and funding fee in collateral tokens.
func (r risk) feeAmount() Uint {
	p := r.position
	feeFactor := r.parameter(argued(positionFeeFactor, p.Market.Hash(), BoolWord(r.closingImprovesBalance())))
	positionFee := ApplyFactor(p.SizeInUsd, feeFactor).Div(r.collateral.Min)

	borrowing := r.measure(CumulativeBorrowingFactor, chain.Address{}, p.IsLong)
	borrowingFee := ApplyFactor(p.SizeInUsd, borrowing.Sub(p.BorrowingFactor.Min(borrowing))).Div(r.collateral.Min)

	funding := r.measure(FundingFeeAmountPerSize, p.CollateralToken, p.IsLong)
	perSize := funding.Sub(p.FundingFeeAmountPerSize.Min(funding))
	fundingFee := p.SizeInUsd.MulDivUp(perSize, One.Mul(Pow10(15)))
	return positionFee.Add(borrowingFee).Add(fundingFee)
}

// closingImprovesBalance says whether the open interest of the two sides is nearer to equal without the position: such a close is cheaper.
// The venue compares USD, or index tokens where it is told to.
func (r risk) closingImprovesBalance() bool {
	interest, size := OpenInterest, r.position.SizeInUsd
	if !r.parameter(balanceInTokensKey).IsZero() {
		interest, size = OpenInterestInTokens, r.position.SizeInTokens
	}
	own, other := r.openInterest(interest, r.position.IsLong), r.openInterest(interest, !r.position.IsLong)
	after := own.Sub(own.Min(size))
	return distance(after, other).Less(distance(own, other))
}

func (r risk) openInterest(interest Measure, isLong bool) Uint {
	sum := r.measure(interest, r.market.LongToken, isLong)
	if r.market.ShortToken != r.market.LongToken {
		sum = sum.Add(r.measure(interest, r.market.ShortToken, isLong))
	}
	return sum
}

func (r risk) measure(m Measure, token chain.Address, isLong bool) Uint {
	value, _ := r.rows.Get(MarketValueKey(m, r.position.Market.Hash(), token, isLong)).(MarketValue)
	return value.Value.Uint()
}

// parameter is the word under a key; absent is zero, as in the contract's store.
func (r risk) parameter(key chain.Hash) Uint {
	value, _ := r.rows.Get(RowKey{Parameters, key}).(Parameter)
	return value.Uint()
}

var (
	largest             = UintFromBytes(bytes.Repeat([]byte{0xff}, 32))
	minCollateralUsd    = BaseKey("MIN_COLLATERAL_USD")
	minCollateralFactor = BaseKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION")
	positionFeeFactor   = BaseKey("POSITION_FEE_FACTOR")
)

// argued is the full key of a base key with arguments of one word each.
func argued(base chain.Hash, args ...chain.Hash) chain.Hash {
	var data []byte
	for _, a := range args {
		data = append(data, a[:]...)
	}
	return FullKey(base, data)
}

// ApplyFactor is value·factor with a 30-decimal factor, rounded down (Precision.applyFactor).
func ApplyFactor(value, factor Uint) Uint { return value.MulDiv(factor, One) }

func distance(a, b Uint) Uint {
	if a.Less(b) {
		return b.Sub(a)
	}
	return a.Sub(b)
}
