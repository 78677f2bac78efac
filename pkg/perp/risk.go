package perp

import (
	"bytes"
	"errors"

	"perpkeeper/pkg/chain"
)

// One is 100 % as a factor with 30 decimals (Precision.FLOAT_PRECISION).
var One = chain.Pow10(30)

// Price is a report's price of one token: USD with 30 decimals per smallest unit.
type Price struct{ Min, Max chain.Uint }

// Rows looks rows up: a [State] is one.
type Rows interface {
	// Get returns the row, or nil when there is none.
	Get(RowKey) Row
}

// Circumstances is all a verdict depends on besides the position itself.
type Circumstances struct {
	Rows   Rows
	Prices map[chain.Address]Price
	// Time is the second of the block that a verdict is for: borrowing and funding accrue from their last update to it.
	// What was updated later than that is taken as it stands, so zero means the factors as stored.
	Time uint64
	// FireRatio is the venue's threshold as a factor of the required collateral: [One] is the rule of GMX; a venue that
	// liquidates below 110 % has 1.1·10^30. Less than One counts as One.
	FireRatio chain.Uint
}

// Verdict is the result of the venue's own formula for a position. USD values have 30 decimals.
type Verdict struct {
	RemainingCollateralUsd      chain.Int
	MinCollateralUsd            chain.Uint
	MinCollateralUsdForLeverage chain.Uint
	Liquidatable                bool
	// Ratio is remaining over required collateral as a factor: the margin ratio of LIQ-5. It is 0 when nothing remains,
	// and the largest number when something remains and nothing is required.
	Ratio chain.Uint
	// The parts: RemainingCollateralUsd = CollateralUsd + PnlUsd + ImpactUsd - FeesUsd.
	CollateralUsd chain.Uint
	PnlUsd        chain.Int // after the cap on profits
	ImpactUsd     chain.Int // never positive
	FeesUsd       chain.Uint
	Fees          Fees
}

// judge applies the rule to a position of the market. Discount is the part of the position fee that its account is let
// off, as a 30-decimal factor.
func (t *Terms) judge(p Position, discount chain.Uint) (v Verdict, err error) {
	own, err := t.judgeable(&p)
	if err != nil {
		return v, err
	}
	err = chain.Checked(func() {
		impact, improves := t.impact.ofClosing(&p)
		t.weigh(&v, &p, own, t.impact.againstHealth(&p, impact, t.prices.index), t.feeFactor[index(improves)], discount)
		v.Ratio = marginRatio(v.RemainingCollateralUsd, v.required())
	})
	if err != nil {
		return Verdict{}, err
	}
	return v, nil
}

// safe reports that a position is healthy even if closing it had the largest impact that may count, the dearer of the
// two fees and no discount. What is not safe may still be healthy: [Terms.judge] knows. It takes the sum of all that
// the rule may take from a position as one factor of its size, so it costs a fraction of a verdict; nothing in it
// rounds in the position's favour.
func (t *Terms) safe(p *Position) (is bool) {
	own, err := t.judgeable(p)
	if err != nil {
		return false
	}
	err = chain.Checked(func() {
		has, takes := p.CollateralAmount.Mul(own.price.Min), t.mostTaken(p, own)
		if pnl := t.pnl(p); pnl.Sign() < 0 {
			takes = takes.Add(pnl.Abs())
		} else {
			has = has.Add(pnl.Abs())
		}
		is = takes.Less(has)
	})
	return err == nil && is
}

// mostTaken bounds fees, impact and the collateral that has to remain, in USD.
func (t *Terms) mostTaken(p *Position, own pledge) chain.Uint {
	side := &t.sides[index(p.IsLong)]
	funding := side.fundingPerSize[own.token].Sub(p.FundingFeeAmountPerSize).Mul(own.price.Min).DivUp(perSizeToFactor)
	perUsd := t.mostPerUsd.Add(side.borrowing.factor.Sub(p.BorrowingFactor)).Add(funding)
	// Funding is rounded up by less than a unit of collateral, the division down by less than one.
	return ApplyFactor(p.SizeInUsd, perUsd).Add(t.mostInUsd).Add(own.price.Min).Add(chain.U64(1))
}

var errClosed = errors.New("it is closed")

func (t *Terms) judgeable(p *Position) (pledge, error) {
	if p.SizeInUsd.IsZero() {
		return pledge{}, errClosed
	}
	return t.pledge(p.CollateralToken)
}

// weigh sums up what remains of a position and compares it with what must remain. It leaves the ratio to who asks for
// it.
func (t *Terms) weigh(v *Verdict, p *Position, own pledge, impact chain.Int, feeFactor, discount chain.Uint) {
	v.CollateralUsd = p.CollateralAmount.Mul(own.price.Min)
	v.PnlUsd = t.pnl(p)
	v.ImpactUsd = impact
	v.Fees = t.fees(p, own, feeFactor, discount)
	v.FeesUsd = v.Fees.Total().Mul(own.price.Min)
	v.RemainingCollateralUsd = v.CollateralUsd.Int().Add(v.PnlUsd).Add(v.ImpactUsd).Sub(v.FeesUsd.Int())
	v.MinCollateralUsd = t.minCollateralUsd
	v.MinCollateralUsdForLeverage = ApplyFactor(p.SizeInUsd, t.minCollateralFactor)

	threshold := v.required()
	if t.fireRatio != One {
		threshold = ApplyFactor(threshold, t.fireRatio)
	}
	v.Liquidatable = v.RemainingCollateralUsd.Sign() <= 0 || v.RemainingCollateralUsd.Less(threshold.Int())
}

func (v *Verdict) required() chain.Uint { return v.MinCollateralUsd.Max(v.MinCollateralUsdForLeverage) }

// pnl is the profit after the cap on profits.
func (t *Terms) pnl(p *Position) chain.Int {
	return t.sides[index(p.IsLong)].profits.apply(t.uncappedPnl(p))
}

// uncappedPnl is the profit at the price a close would get (PositionUtils.getPositionPnlUsd). The contract divides by
// the size in tokens, so a position without any reverts.
func (t *Terms) uncappedPnl(p *Position) chain.Int {
	must(!p.SizeInTokens.IsZero())
	if p.IsLong {
		return p.SizeInTokens.Mul(t.prices.index.Min).Int().Sub(p.SizeInUsd.Int())
	}
	return p.SizeInUsd.Int().Sub(p.SizeInTokens.Mul(t.prices.index.Max).Int())
}

var largest = chain.UintFromBytes(bytes.Repeat([]byte{0xff}, 32))

func marginRatio(remaining chain.Int, required chain.Uint) chain.Uint {
	switch {
	case remaining.Sign() <= 0:
		return chain.Uint{}
	case required.IsZero():
		return largest
	}
	return remaining.Uint().MulDiv(One, required)
}
