// Package exposure ranks a venue's open positions by how near they are to liquidation.
//
// The margin ratio and whether a position is due are the venue's own rule ([perp.View]), to the wei. The distance is an
// estimate: by how much the index price has to move against the position if nothing else moves (no fee accrues, the cap
// on profits and the price impact stay), taken as linear from here.
package exposure

import (
	"cmp"
	"slices"
	"sort"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
)

// Position is an open position at a moment.
type Position struct {
	perp.Position

	// Ratio is remaining over required collateral, a 30-decimal factor; below one it is due.
	Ratio chain.Uint
	// Distance is the move of the index price against it that makes it due, a 30-decimal factor of the price; zero
	// where it is due already.
	Distance chain.Uint
	// Price is the index price now and LiquidationPrice the estimate, in USD of 30 decimals a smallest unit of the
	// token.
	Price, LiquidationPrice chain.Uint
	// Decision is why it is due or not, in the planner's words.
	Decision due.Decision
}

// Ranking is the positions that are nearest to liquidation at a moment.
type Ranking struct {
	Nearest []Position
	Curves  []Curve // by market, the one with most first
	Open    int     // positions
	Unknown int     // of these, those that cannot be judged: without a fresh report, say
}

// Steps are those of a curve's distances: step k is (k/100)² of the price, so that the last one is a quarter.
const Steps = 50

// Curve is the size in USD, of 30 decimals, of a market's positions that are within each step of liquidation.
type Curve struct {
	Market chain.Address
	Sizes  [Steps + 1]chain.Uint
}

// curves are those of markets, in which each step still is without those before it.
type curves map[chain.Address]*Curve

func (c curves) count(p Position) {
	step := sort.Search(Steps+1, func(k int) bool {
		return p.Distance.Cmp(perp.One.MulDiv(chain.U64(uint64(k*k)), chain.U64(10_000))) <= 0
	})
	if step > Steps {
		return
	}
	if c[p.Market] == nil {
		c[p.Market] = &Curve{Market: p.Market}
	}
	c[p.Market].Sizes[step] = c[p.Market].Sizes[step].Add(p.SizeInUsd)
}

func (c curves) whole() (all []Curve) {
	for _, one := range c {
		for k := range Steps {
			one.Sizes[k+1] = one.Sizes[k+1].Add(one.Sizes[k])
		}
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Curve) int {
		return cmp.Or(b.Sizes[Steps].Cmp(a.Sizes[Steps]), slices.Compare(a.Market[:], b.Market[:]))
	})
	return all
}

// rank judges positions at a moment and keeps the nearest of them.
func rank(m *due.Moment, open func(yield func(perp.Position) bool), most int) Ranking {
	r, sizes := Ranking{}, curves{}
	for p := range open {
		r.Open++
		at, ok := judge(m, p)
		if !ok {
			r.Unknown++
			continue
		}
		sizes.count(at)
		r.Nearest = append(r.Nearest, at)
		if len(r.Nearest) >= 2*most {
			r.cut(most)
		}
	}
	r.cut(most)
	r.Curves = sizes.whole()
	for i := range r.Nearest {
		r.Nearest[i].Decision = m.Position(r.Nearest[i].Position)
	}
	return r
}

// cut keeps the nearest: by distance, the lower margin ratio first, the larger of equals.
func (r *Ranking) cut(most int) {
	slices.SortFunc(r.Nearest, func(a, b Position) int {
		return cmp.Or(a.Distance.Cmp(b.Distance), a.Ratio.Cmp(b.Ratio), b.SizeInUsd.Cmp(a.SizeInUsd),
			slices.Compare(a.PositionKey[:], b.PositionKey[:]))
	})
	r.Nearest = r.Nearest[:min(most, len(r.Nearest))]
}

// judge is false where a position cannot be judged.
func judge(m *due.Moment, p perp.Position) (at Position, ok bool) {
	market, known := m.Market(p.Market)
	quote, priced := m.Quotes[market.IndexToken]
	if !known || !priced {
		return at, false
	}
	v, err := m.View().Judge(p)
	if err != nil {
		return at, false
	}
	at = Position{Position: p, Ratio: v.Ratio, Price: quote.Min}
	err = chain.Checked(func() { at.Distance = distance(market, p, v, quote.Min) })
	if err != nil {
		return at, false
	}
	move := quote.Min.MulDiv(at.Distance, perp.One)
	at.LiquidationPrice = quote.Min.Add(move)
	if p.IsLong {
		at.LiquidationPrice = quote.Min.Sub(move.Min(quote.Min))
	}
	return at, true
}

// distance is what is left above the required collateral, over what a whole move of the index price would take: the
// position's value, and its collateral where that is the index token itself.
func distance(market perp.Market, p perp.Position, v perp.Verdict, price chain.Uint) chain.Uint {
	left := v.RemainingCollateralUsd.Sub(v.MinCollateralUsd.Max(v.MinCollateralUsdForLeverage).Int())
	if v.Liquidatable || left.Sign() <= 0 {
		return chain.Uint{}
	}
	lost := p.SizeInTokens.Mul(price).Int()
	if p.CollateralToken == market.IndexToken {
		collateral := v.CollateralUsd.Int()
		if !p.IsLong {
			collateral = collateral.Neg()
		}
		lost = lost.Add(collateral)
	}
	if lost.Sign() <= 0 {
		return chain.U64(1000).Mul(perp.One) // a rise of the price makes it safer
	}
	return left.Abs().MulDiv(perp.One, lost.Abs())
}
