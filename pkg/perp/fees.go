package perp

import "perpkeeper/pkg/chain"

// Fees is what closing a position would cost, in units of its collateral token, beside price impact. Neither the
// liquidation fee nor the fee of an interface counts when a position is judged, and funding that the trader may claim
// is not credited.
type Fees struct {
	Position  chain.Uint // less the discount
	Borrowing chain.Uint
	Funding   chain.Uint
}

// Total is all of it (PositionFees.totalCostAmount).
func (f Fees) Total() chain.Uint { return f.Position.Add(f.Borrowing).Add(f.Funding) }

// fees follows PositionPricingUtils.getPositionFees: position and borrowing fee at the collateral's lower price,
// rounded down; funding rounded up. A position that is ahead of its side's factors cannot be, and reverts.
func (t *Terms) fees(p *Position, own pledge, feeFactor, discount chain.Uint) Fees {
	positionFee := ApplyFactor(p.SizeInUsd, feeFactor).Div(own.price.Min)
	side := &t.sides[index(p.IsLong)]
	borrowed := ApplyFactor(p.SizeInUsd, side.borrowing.factor.Sub(p.BorrowingFactor))
	perSize := side.fundingPerSize[own.token].Sub(p.FundingFeeAmountPerSize)
	return Fees{
		Position:  positionFee.Sub(ApplyFactor(positionFee, discount)),
		Borrowing: borrowed.Div(own.price.Min),
		Funding:   p.SizeInUsd.MulDivUp(perSize, perSizeUnit),
	}
}

// proDiscount is the part of the position fee that an account is let off for its pro tier, as a 30-decimal factor; zero
// for most. A larger one for its referral would take its place (PositionPricingUtils.getPositionFeesAfterReferral), but
// no event of the exchange shows that: referral codes and tiers live in a contract of their own. A discount can only
// make a position healthier, so one of such an account is found due a little early and never late; the simulated call,
// which knows the discount, holds it back until it is.
func proDiscount(rows Rows, account chain.Address) chain.Uint {
	l := ledger{rows: rows}
	tier := l.word(proTraderTierKey, account.Hash())
	if tier.IsZero() {
		return chain.Uint{}
	}
	return l.word(proDiscountFactorKey, tier.Bytes32())
}
