package perp

import (
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

func parameter(key chain.Hash, v chain.Uint) Parameter {
	return Parameter{Key: key, Value: v.Bytes32()}
}

// LIQ-2, LIQ-7: to ignore a discount is to be early and never late. What is liquidatable with a discount is so without,
// the healthier the larger it is, and by no more than the position fee.
func TestIgnoredDiscountsAreEarlyNeverLate(t *testing.T) {
	eth, usdc := chain.Address{1}, chain.Address{2}
	market := Market{MarketToken: chain.Address{3}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	early := 0
	rapid.Check(t, func(t *rapid.T) {
		rows := rowMap{}
		rows.put(market, parameter(DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.MarketToken.Hash()),
			chain.Pow10(28)))
		for _, improves := range []bool{true, false} {
			rows.put(parameter(DataStoreKey("POSITION_FEE_FACTOR", market.MarketToken.Hash(), BoolWord(improves)),
				chain.U64(6).Mul(chain.Pow10(26))))
		}
		p := Position{
			Market: market.MarketToken, CollateralToken: usdc, IsLong: true, SizeInUsd: chain.U64(10_000).Mul(One),
			SizeInTokens: chain.U64(2).Mul(chain.Pow10(18)),
			// 106 USD are required, fee included
			CollateralAmount: chain.U64(rapid.Uint64Range(100_000_000, 112_000_000).Draw(t, "collateral")),
		}
		prices := map[chain.Address]Price{eth: {Min: chain.U64(5000).Mul(chain.Pow10(12)),
			Max: chain.U64(5000).Mul(chain.Pow10(12))},
			usdc: {Min: chain.Pow10(24), Max: chain.Pow10(24)}}
		judge := func(discount chain.Uint) Verdict {
			terms, err := NewView(Circumstances{Rows: rows, Prices: prices}).Terms(p.Market)
			if err != nil {
				t.Fatal(err)
			}
			v, err := terms.judge(p, discount)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		less := One.MulDiv(chain.U64(rapid.Uint64Range(0, 100).Draw(t, "discount")), chain.U64(100))
		more := less.Add(One.Sub(less).MulDiv(chain.U64(rapid.Uint64Range(0, 100).Draw(t, "more")), chain.U64(100)))
		none, some, most := judge(chain.Uint{}), judge(less), judge(more)
		if some.Liquidatable && !none.Liquidatable || most.Liquidatable && !some.Liquidatable {
			t.Fatalf("late: %+v, %+v, %+v", none, some, most)
		}
		if fee := chain.U64(6).Mul(One).Int(); fee.Less(most.RemainingCollateralUsd.Sub(none.RemainingCollateralUsd)) {
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

// dollars is the price of a token of so many decimals.
func dollars(n, decimals uint64) chain.Uint { return chain.U64(n).Mul(chain.Pow10(30 - decimals)) }

func exactly(u chain.Uint) Price { return Price{Min: u, Max: u} }

// tenEth is a long of 10 ETH bought at $5000 with $5000 of collateral, alone on a market that requires 1 % and charges
// 0.04 % for closing where that balances the sides, 0.06 % where not.
func tenEth() (p Position, rows rowMap, eth chain.Address) {
	eth = chain.Address{0xe7}
	p = longPosition(0, 1)
	p.SizeInUsd, p.SizeInTokens, p.CollateralAmount = dollars(50_000, 0), chain.U64(10).Mul(chain.Pow10(18)),
		chain.U64(5_000).
			Mul(chain.Pow10(6))
	rows = rowMap{}
	rows.put(Market{MarketToken: market, IndexToken: eth, LongToken: eth, ShortToken: usdc},
		parameter(DataStoreKey("MIN_COLLATERAL_USD"), One),
		parameter(DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.Hash()), chain.Pow10(28)),
		parameter(DataStoreKey("POSITION_FEE_FACTOR", market.Hash(), BoolWord(true)),
			chain.U64(4).Mul(chain.Pow10(26))),
		parameter(DataStoreKey("POSITION_FEE_FACTOR", market.Hash(), BoolWord(false)),
			chain.U64(6).Mul(chain.Pow10(26))),
		measure(OpenInterest, usdc, true, p.SizeInUsd), measure(OpenInterestInTokens, usdc, true, p.SizeInTokens))
	return p, rows, eth
}

func measure(m Measure, token chain.Address, isLong bool, v chain.Uint) MarketValue {
	return MarketValue{Measure: m, Scope: market.Hash(), Token: token, IsLong: isLong, Value: v.Int()}
}

func TestJudgeNamesWhatIsMissing(t *testing.T) {
	type prices = map[chain.Address]Price
	eth, dollar := chain.Address{0xe7}, exactly(dollars(1, 6))
	for name, test := range map[string]struct {
		change func(*Position, prices)
		want   string
	}{
		"a closed position": {func(p *Position, _ prices) { p.SizeInUsd = chain.Uint{} }, "is closed"},
		"an unknown market": {func(p *Position, _ prices) { p.Market = chain.Address{1} }, "is unknown"},
		"no index price":    {func(_ *Position, ps prices) { delete(ps, eth) }, "no price"},
		"an empty price":    {func(_ *Position, ps prices) { ps[eth] = Price{} }, "no price"},
		"an upside down one": {func(_ *Position, ps prices) { ps[eth] = Price{chain.U64(2), chain.U64(1)} },
			"no price"},
		"no collateral price": {func(_ *Position, ps prices) { delete(ps, usdc) }, "no price"},
		"an overflow":         {func(_ *Position, ps prices) { ps[eth] = exactly(maxInt) }, "overflow"},
	} {
		p, rows, _ := tenEth()
		c := Circumstances{Rows: rows, Prices: prices{eth: dollar, usdc: dollar}, FireRatio: One}
		if _, err := NewView(c).Judge(p); err != nil {
			t.Fatal(err)
		}
		test.change(&p, c.Prices)
		if _, err := NewView(c).Judge(p); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
