package perp

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

type rowMap map[RowKey]Row

func (m rowMap) Get(k RowKey) Row { return m[k] }

func (m rowMap) put(rows ...Row) {
	for _, r := range rows {
		m[r.RowKey()] = r
	}
}

func parameter(key chain.Hash, v Uint) Parameter { return Parameter{Key: key, Value: v.Bytes32()} }

// LIQ-2, LIQ-7: to ignore a discount is to be early and never late. What is liquidatable with a discount is so without,
// the healthier the larger it is, and by no more than the position fee.
func TestIgnoredDiscountsAreEarlyNeverLate(t *testing.T) {
	eth, usdc := chain.Address{1}, chain.Address{2}
	market := Market{MarketToken: chain.Address{3}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	early := 0
	rapid.Check(t, func(t *rapid.T) {
		rows := rowMap{}
		rows.put(market, parameter(DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.MarketToken.Hash()),
			Pow10(28)))
		for _, improves := range []bool{true, false} {
			rows.put(parameter(DataStoreKey("POSITION_FEE_FACTOR", market.MarketToken.Hash(), BoolWord(improves)),
				U64(6).Mul(Pow10(26))))
		}
		p := Position{
			Market: market.MarketToken, CollateralToken: usdc, IsLong: true, SizeInUsd: U64(10_000).Mul(One),
			SizeInTokens: U64(2).Mul(Pow10(18)),
			// 106 USD are required, fee included
			CollateralAmount: U64(rapid.Uint64Range(100_000_000, 112_000_000).Draw(t, "collateral")),
		}
		prices := map[chain.Address]Price{eth: {Min: U64(5000).Mul(Pow10(12)), Max: U64(5000).Mul(Pow10(12))},
			usdc: {Min: Pow10(24), Max: Pow10(24)}}
		judge := func(discount Uint) Verdict {
			v, err := Judge(p, Circumstances{Rows: rows, Prices: prices,
				ReferralDiscount: func(chain.Address) Uint { return discount }})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		less := One.MulDiv(U64(rapid.Uint64Range(0, 100).Draw(t, "discount")), U64(100))
		more := less.Add(One.Sub(less).MulDiv(U64(rapid.Uint64Range(0, 100).Draw(t, "more")), U64(100)))
		none, some, most := judge(Uint{}), judge(less), judge(more)
		if some.Liquidatable && !none.Liquidatable || most.Liquidatable && !some.Liquidatable {
			t.Fatalf("late: %+v, %+v, %+v", none, some, most)
		}
		if fee := U64(6).Mul(One).Int(); fee.Less(most.RemainingCollateralUsd.Sub(none.RemainingCollateralUsd)) {
			t.Fatalf("a discount of more than the fee: %+v, %+v", none, most)
		}
		if none.Liquidatable && !most.Liquidatable {
			early++
		}
	})
	if early == 0 {
		t.Error("no case in which a discount decides")
	}
}

// The dumb twin is the rule written out in math/big.
func TestJudgeAgainstBig(t *testing.T) {
	eth, usdc := chain.Address{1}, chain.Address{2}
	market := Market{MarketToken: chain.Address{3}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	e30 := new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	rapid.Check(t, func(t *rapid.T) {
		usd := func(label string, hi uint64) Uint { return U64(rapid.Uint64Range(1, hi).Draw(t, label)).Mul(Pow10(30)) }
		price := U64(rapid.Uint64Range(1000, 9000).Draw(t, "price")).Mul(Pow10(12))
		spread := U64(rapid.Uint64Range(0, 5).Draw(t, "spread")).Mul(Pow10(11))
		index := Price{price.Sub(spread), price.Add(spread)}
		p := Position{
			Market: market.MarketToken, CollateralToken: usdc, IsLong: rapid.Bool().Draw(t, "long"),
			SizeInUsd:        usd("size", 1_000_000),
			CollateralAmount: U64(rapid.Uint64Range(0, 50_000_000_000).Draw(t, "collateral")),
		}
		p.SizeInTokens = p.SizeInUsd.Div(U64(rapid.Uint64Range(1000, 9000).Draw(t, "entry")).Mul(Pow10(12)))
		minUsd, factor := usd("minimum", 10), U64(rapid.Uint64Range(0, 50).Draw(t, "factor")).Mul(Pow10(27))
		improving, worsening := U64(5).Mul(Pow10(26)), U64(7).Mul(Pow10(26))
		ownOI, otherOI := p.SizeInUsd.Add(usd("own", 1_000_000)), usd("other", 2_000_000)
		fire := U64(rapid.Uint64Range(90, 120).Draw(t, "fire")).Mul(Pow10(28))
		rows := rowMap{}
		rows.put(market, parameter(DataStoreKey("MIN_COLLATERAL_USD"), minUsd),
			parameter(DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.MarketToken.Hash()), factor),
			parameter(DataStoreKey("POSITION_FEE_FACTOR", market.MarketToken.Hash(), BoolWord(true)), improving),
			parameter(DataStoreKey("POSITION_FEE_FACTOR", market.MarketToken.Hash(), BoolWord(false)), worsening),
			MarketValue{Measure: OpenInterest, Scope: market.MarketToken.Hash(), Token: usdc, IsLong: p.IsLong,
				Value: ownOI.Int()},
			MarketValue{Measure: OpenInterest, Scope: market.MarketToken.Hash(), Token: eth, IsLong: !p.IsLong,
				Value: otherOI.Int()})
		col := Price{Min: Pow10(24), Max: Pow10(24)}

		got, err := Judge(p, Circumstances{Rows: rows, Prices: map[chain.Address]Price{eth: index, usdc: col},
			FireRatio: fire})
		if err != nil {
			t.Fatal(err)
		}

		gap := func(own *big.Int) *big.Int { return new(big.Int).Abs(new(big.Int).Sub(own, otherOI.Big())) }
		feeFactor := worsening.Big()
		if gap(new(big.Int).Sub(ownOI.Big(), p.SizeInUsd.Big())).Cmp(gap(ownOI.Big())) < 0 {
			feeFactor = improving.Big()
		}
		fee := new(big.Int).Mul(p.SizeInUsd.Big(), feeFactor)
		fee.Div(fee, e30).Div(fee, col.Min.Big()).Mul(fee, col.Min.Big())
		pnl := new(big.Int).Sub(new(big.Int).Mul(p.SizeInTokens.Big(), index.Min.Big()), p.SizeInUsd.Big())
		if !p.IsLong {
			pnl.Sub(p.SizeInUsd.Big(), new(big.Int).Mul(p.SizeInTokens.Big(), index.Max.Big()))
		}
		remaining := new(big.Int).Mul(p.CollateralAmount.Big(), col.Min.Big())
		remaining.Add(remaining, pnl).Sub(remaining, fee)
		required := new(big.Int).Mul(p.SizeInUsd.Big(), factor.Big())
		required.Div(required, e30)
		if required.Cmp(minUsd.Big()) < 0 {
			required = minUsd.Big()
		}
		threshold := new(big.Int).Mul(required, fire.Big())
		threshold.Div(threshold, e30)
		if threshold.Cmp(required) < 0 {
			threshold = required
		}
		want := remaining.Sign() <= 0 || remaining.Cmp(threshold) < 0
		if got.RemainingCollateralUsd.Big().Cmp(remaining) != 0 || got.Liquidatable != want {
			t.Fatalf("got %+v, want remaining %v, liquidatable %v", got, remaining, want)
		}
	})
}

// dollars is the price of a token of so many decimals.
func dollars(n, decimals uint64) Uint { return U64(n).Mul(Pow10(30 - decimals)) }

func exactly(u Uint) Price { return Price{Min: u, Max: u} }

// tenEth is a long of 10 ETH bought at $5000 with $5000 of collateral, alone on a market that requires 1 % and charges
// 0.04 % for closing where that balances the sides, 0.06 % where not.
func tenEth() (p Position, rows rowMap, eth chain.Address) {
	eth = chain.Address{0xe7}
	p = longPosition(0, 1)
	p.SizeInUsd, p.SizeInTokens, p.CollateralAmount = dollars(50_000, 0), U64(10).Mul(Pow10(18)), U64(5_000).
		Mul(Pow10(6))
	rows = rowMap{}
	rows.put(Market{MarketToken: market, IndexToken: eth, LongToken: eth, ShortToken: usdc},
		parameter(DataStoreKey("MIN_COLLATERAL_USD"), One),
		parameter(DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.Hash()), Pow10(28)),
		parameter(DataStoreKey("POSITION_FEE_FACTOR", market.Hash(), BoolWord(true)), U64(4).Mul(Pow10(26))),
		parameter(DataStoreKey("POSITION_FEE_FACTOR", market.Hash(), BoolWord(false)), U64(6).Mul(Pow10(26))),
		measure(OpenInterest, usdc, true, p.SizeInUsd), measure(OpenInterestInTokens, usdc, true, p.SizeInTokens))
	return p, rows, eth
}

func measure(m Measure, token chain.Address, isLong bool, v Uint) MarketValue {
	return MarketValue{Measure: m, Scope: market.Hash(), Token: token, IsLong: isLong, Value: v.Int()}
}

// LIQ-5: the verdict by hand. At $4550 the long has lost $4500 and closing costs $20, so $480 of the required $500
// remain: 96 %.
func TestJudgeByHand(t *testing.T) {
	noRequirement := func(_ *Position, rows rowMap) {
		rows.put(parameter(DataStoreKey("MIN_COLLATERAL_USD"), Uint{}),
			parameter(DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.Hash()), Uint{}))
	}
	elevenTenths := U64(11).Mul(Pow10(29))
	own := market.Hash()
	set := func(rows rowMap, v Uint, name string, args ...chain.Hash) {
		rows.put(parameter(DataStoreKey(name, args...), v))
	}
	accruedAt := func(v MarketValue, second uint64) MarketValue { v.Stamp.TimeMs = second * 1000; return v }
	pending := func(hundredths int64, most Uint) func(*Position, rowMap) {
		return func(p *Position, rows rowMap) {
			p.PendingImpactAmount = I64(hundredths * 10_000_000_000_000_000)
			set(rows, most, "MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS", own)
		}
	}
	for name, test := range map[string]struct {
		change       func(*Position, rowMap)
		ethPrice     uint64
		fireRatio    Uint
		remaining    string // millionths of a dollar
		ratio        string // 30 decimals
		liquidatable bool
	}{
		"healthy":                   {nil, 5_000, One, "4980000000", "9960000000000000000000000000000", false},
		"below the requirement":     {nil, 4_550, One, "480000000", "960000000000000000000000000000", true},
		"exactly the requirement":   {nil, 4_552, One, "500000000", "1000000000000000000000000000000", false},
		"106 % on a venue of 110 %": {nil, 4_555, elevenTenths, "530000000", "1060000000000000000000000000000", true},
		"106 % by the plain rule":   {nil, 4_555, One, "530000000", "1060000000000000000000000000000", false},
		"exactly 110 %": {nil, 4_557, elevenTenths, "550000000", "1100000000000000000000000000000",
			false},
		"a fire ratio below one":      {nil, 4_550, Pow10(29), "480000000", "960000000000000000000000000000", true},
		"less than nothing left":      {nil, 4_500, One, "-20000000", "0", true},
		"zero left, nothing required": {noRequirement, 4_502, One, "0", "0", true},
		"nothing required":            {noRequirement, 5_000, One, "4980000000", largest.String(), false},
		"the smallest collateral": {func(_ *Position, rows rowMap) {
			rows.put(parameter(DataStoreKey("MIN_COLLATERAL_USD"), dollars(600, 0)))
		}, 4_552, One, "500000000", "833333333333333333333333333333", true},
		"a close that tilts the sides": {func(_ *Position, rows rowMap) {
			rows.put(measure(OpenInterest, usdc, false, dollars(200_000, 0)))
		}, 4_554, One, "510000000", "1020000000000000000000000000000", false},
		"sides counted in tokens": {func(p *Position, rows rowMap) {
			rows.put(parameter(balanceInTokensKey, U64(1)),
				measure(OpenInterestInTokens, usdc, false, p.SizeInTokens.Mul(U64(3))))
		}, 4_554, One, "510000000", "1020000000000000000000000000000", false},
		"borrowing": {func(p *Position, rows rowMap) {
			p.BorrowingFactor = Pow10(27)
			rows.put(measure(CumulativeBorrowingFactor, chain.Address{}, true, U64(2).Mul(Pow10(27))))
		}, 4_553, One, "460000000", "920000000000000000000000000000", true},
		"funding": {func(p *Position, rows rowMap) {
			rows.put(measure(FundingFeeAmountPerSize, usdc, true, U64(40).Mul(Pow10(6)).MulDiv(Pow10(45), p.SizeInUsd)))
		}, 4_553, One, "470000000", "940000000000000000000000000000", true},
		"a fraction of funding": {func(p *Position, rows rowMap) {
			rows.put(measure(FundingFeeAmountPerSize, usdc, true, U64(40).Mul(Pow10(6)).MulDiv(Pow10(45), p.SizeInUsd).
				Add(U64(1))))
		}, 4_557, One, "509999999", "1019999998000000000000000000000", false},
		// Half of the pool of 20 ETH is reserved: 10^-6 of the size a second, $50 in 1000 seconds.
		"borrowing accrues": {func(_ *Position, rows rowMap) {
			set(rows, U64(2).Mul(Pow10(24)), "BORROWING_FACTOR", own, BoolWord(true))
			set(rows, One, "BORROWING_EXPONENT_FACTOR", own, BoolWord(true))
			rows.put(measure(PoolAmount, chain.Address{0xe7}, false, U64(20).Mul(Pow10(18))),
				accruedAt(measure(CumulativeBorrowingFactor, noToken, true, Uint{}), 1_000))
		}, 4_557, One, "500000000", "1000000000000000000000000000000", false},
		// 80 % of the pool of 12.5 ETH is reserved, where half is the most and 70 % optimal: usage 160 %. (1.6 +
		// 3·0.9/0.3)·10^-6 a second.
		"borrowing beyond the kink": {func(_ *Position, rows rowMap) {
			set(rows, U64(5).Mul(Pow10(29)), "OPEN_INTEREST_RESERVE_FACTOR", own, BoolWord(true))
			set(rows, U64(7).Mul(Pow10(29)), "OPTIMAL_USAGE_FACTOR", own, BoolWord(true))
			set(rows, Pow10(24), "BASE_BORROWING_FACTOR", own, BoolWord(true))
			set(rows, U64(4).Mul(Pow10(24)), "ABOVE_OPTIMAL_USAGE_BORROWING_FACTOR", own, BoolWord(true))
			rows.put(measure(PoolAmount, chain.Address{0xe7}, false, U64(125).Mul(Pow10(17))),
				accruedAt(measure(CumulativeBorrowingFactor, noToken, true, Uint{}), 1_000))
		}, 5_000, One, "4450000000", "8900000000000000000000000000000", false},
		// A third of the open interest is on one side only: 10^-6 of the size a second, $50; the close no longer
		// balances the sides, $30.
		"funding accrues": {func(_ *Position, rows rowMap) {
			set(rows, U64(3).Mul(Pow10(24)), "FUNDING_FACTOR", own)
			set(rows, One, "FUNDING_EXPONENT_FACTOR", own)
			set(rows, One, "MAX_FUNDING_FACTOR_PER_SECOND", own)
			rows.put(measure(OpenInterest, usdc, false, dollars(25_000, 0)),
				accruedAt(measure(FundingFactorPerSecond, noToken, false, Uint{}), 1_000))
		}, 5_000, One, "4920000000", "9840000000000000000000000000000", false},
		"funding that longs receive": {func(_ *Position, rows rowMap) {
			set(rows, U64(3).Mul(Pow10(24)), "FUNDING_FACTOR", own)
			set(rows, One, "FUNDING_EXPONENT_FACTOR", own)
			set(rows, One, "MAX_FUNDING_FACTOR_PER_SECOND", own)
			rows.put(measure(OpenInterest, usdc, false, dollars(75_000, 0)),
				accruedAt(measure(FundingFactorPerSecond, noToken, false, Uint{}), 1_000))
		}, 5_000, One, "4970000000", "9940000000000000000000000000000", false},
		// The sides are equal and nothing is saved, so the least factor, 10^-6 a second, falls on longs.
		"the least funding": {func(p *Position, rows rowMap) {
			set(rows, One, "FUNDING_INCREASE_FACTOR_PER_SECOND", own)
			set(rows, Pow10(24), "MIN_FUNDING_FACTOR_PER_SECOND", own)
			set(rows, One, "MAX_FUNDING_FACTOR_PER_SECOND", own)
			rows.put(measure(OpenInterest, usdc, false, p.SizeInUsd),
				accruedAt(measure(FundingFactorPerSecond, noToken, false, Uint{}), 1_000))
		}, 5_000, One, "4920000000", "9840000000000000000000000000000", false},
		// All longs together have won $10 000; the pool of 20 ETH may pay 5 % of its $120 000.
		"profits beyond the pool's": {func(_ *Position, rows rowMap) {
			set(rows, U64(5).Mul(Pow10(28)), "MAX_PNL_FACTOR", BaseKey("MAX_PNL_FACTOR_FOR_TRADERS"), own,
				BoolWord(true))
			rows.put(measure(PoolAmount, chain.Address{0xe7}, false, U64(20).Mul(Pow10(18))))
		}, 6_000, One, "10980000000", "21960000000000000000000000000000", false},
		"a discount of a tier": {func(_ *Position, rows rowMap) {
			set(rows, U64(3), "PRO_TRADER_TIER", trader.Hash())
			set(rows, U64(5).Mul(Pow10(29)), "PRO_DISCOUNT_FACTOR", chain.Hash{31: 3})
		}, 5_000, One, "4990000000", "9980000000000000000000000000000", false},
		"an impact still to be paid": {pending(-1, Pow10(28)), 5_000, One, "4930000000",
			"9860000000000000000000000000000", false},
		"as much of it as counts": {pending(-1, U64(5).Mul(Pow10(26))), 5_000, One, "4955000000",
			"9910000000000000000000000000000", false},
		"none of it where none counts": {pending(-1, Uint{}), 5_000, One, "4980000000",
			"9960000000000000000000000000000", false},
		"an impact still to be received": {pending(1, Pow10(28)), 5_000, One, "4980000000",
			"9960000000000000000000000000000", false},
		// The long is all there is, so closing it turns $50 000 of imbalance into none: a reward of 1 % · 50 000² / 50
		// 000, of which 0.1 % of the size counts, against an impact of $100 to be paid.
		"a reward for balancing": {func(p *Position, rows rowMap) {
			pending(-2, Pow10(28))(p, rows)
			for _, side := range []chain.Hash{BoolWord(false), BoolWord(true)} {
				set(rows, U64(2).Mul(Pow10(23)), "POSITION_IMPACT_FACTOR", own, side)
				set(rows, U64(2).Mul(One), "POSITION_IMPACT_EXPONENT_FACTOR", own, side)
				set(rows, Pow10(27), "MAX_POSITION_IMPACT_FACTOR", own, side)
			}
		}, 5_000, One, "4930000000", "9860000000000000000000000000000", false},
		// Closing the long leaves $200 000 of shorts where there were $150 000 more of them: 0.07 % · (200 000 - 150
		// 000) = $35, and $30 of fee.
		"a charge for tilting": {func(p *Position, rows rowMap) {
			pending(0, Pow10(28))(p, rows)
			rows.put(measure(OpenInterest, usdc, false, dollars(200_000, 0)))
			for _, side := range []chain.Hash{BoolWord(false), BoolWord(true)} {
				set(rows, U64(7).Mul(Pow10(26)), "POSITION_IMPACT_FACTOR", own, side)
				set(rows, One, "POSITION_IMPACT_EXPONENT_FACTOR", own, side)
			}
		}, 5_000, One, "4935000000", "9870000000000000000000000000000", false},
		"a short": {func(p *Position, rows rowMap) {
			p.IsLong = false
			rows.put(measure(OpenInterest, usdc, true, Uint{}), measure(OpenInterest, usdc, false, p.SizeInUsd))
		}, 5_448, One, "500000000", "1000000000000000000000000000000", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, rows, eth := tenEth()
			if test.change != nil {
				test.change(&p, rows)
			}
			got, err := Judge(p, Circumstances{Rows: rows, FireRatio: test.fireRatio, Time: 2_000,
				Prices: map[chain.Address]Price{eth: exactly(dollars(test.ethPrice, 18)),
					usdc: exactly(dollars(1, 6))}})
			if err != nil {
				t.Fatal(err)
			}
			remaining, err := ParseInt(test.remaining)
			if err != nil {
				t.Fatal(err)
			}
			if want := remaining.Mul(Pow10(24).Int()); got.RemainingCollateralUsd != want ||
				got.Liquidatable != test.liquidatable ||
				got.Ratio.String() != test.ratio {
				t.Errorf("got %s, ratio %s, liquidatable %v", got.RemainingCollateralUsd, got.Ratio, got.Liquidatable)
			}
		})
	}
}

func TestJudgeNamesWhatIsMissing(t *testing.T) {
	type prices = map[chain.Address]Price
	eth, dollar := chain.Address{0xe7}, exactly(dollars(1, 6))
	for name, test := range map[string]struct {
		change func(*Position, prices)
		want   string
	}{
		"a closed position":   {func(p *Position, _ prices) { p.SizeInUsd = Uint{} }, "is closed"},
		"an unknown market":   {func(p *Position, _ prices) { p.Market = chain.Address{1} }, "is unknown"},
		"no index price":      {func(_ *Position, ps prices) { delete(ps, eth) }, "no price"},
		"an empty price":      {func(_ *Position, ps prices) { ps[eth] = Price{} }, "no price"},
		"an upside down one":  {func(_ *Position, ps prices) { ps[eth] = Price{U64(2), U64(1)} }, "no price"},
		"no collateral price": {func(_ *Position, ps prices) { delete(ps, usdc) }, "no price"},
		"an overflow":         {func(_ *Position, ps prices) { ps[eth] = exactly(maxMagnitude) }, "overflow"},
	} {
		p, rows, _ := tenEth()
		c := Circumstances{Rows: rows, Prices: prices{eth: dollar, usdc: dollar}, FireRatio: One}
		if _, err := Judge(p, c); err != nil {
			t.Fatal(err)
		}
		test.change(&p, c.Prices)
		if _, err := Judge(p, c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
