package perp

import (
	"math/big"
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

// The dumb twin is the rule written out in math/big.
func TestJudgeAgainstBig(t *testing.T) {
	eth, usdc := chain.Address{1}, chain.Address{2}
	market := Market{MarketToken: chain.Address{3}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	e30 := new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	rapid.Check(t, func(t *rapid.T) {
		dollars := func(label string, hi uint64) Uint { return U64(rapid.Uint64Range(1, hi).Draw(t, label)).Mul(Pow10(30)) }
		price := U64(rapid.Uint64Range(1000, 9000).Draw(t, "price")).Mul(Pow10(12))
		spread := U64(rapid.Uint64Range(0, 5).Draw(t, "spread")).Mul(Pow10(11))
		index := Price{price.Sub(spread), price.Add(spread)}
		p := Position{
			Market: market.MarketToken, CollateralToken: usdc, IsLong: rapid.Bool().Draw(t, "long"), SizeInUsd: dollars("size", 1_000_000),
			CollateralAmount: U64(rapid.Uint64Range(0, 50_000_000_000).Draw(t, "collateral")),
		}
		p.SizeInTokens = p.SizeInUsd.Div(U64(rapid.Uint64Range(1000, 9000).Draw(t, "entry")).Mul(Pow10(12)))
		minUsd, factor := dollars("minimum", 10), U64(rapid.Uint64Range(0, 50).Draw(t, "factor")).Mul(Pow10(27))
		improving, worsening := U64(5).Mul(Pow10(26)), U64(7).Mul(Pow10(26))
		ownOI, otherOI := p.SizeInUsd.Add(dollars("own", 1_000_000)), dollars("other", 2_000_000)
		fire := U64(rapid.Uint64Range(90, 120).Draw(t, "fire")).Mul(Pow10(28))
		rows := rowMap{}
		rows.put(market, parameter(DataStoreKey("MIN_COLLATERAL_USD"), minUsd),
			parameter(DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.MarketToken.Hash()), factor),
			parameter(DataStoreKey("POSITION_FEE_FACTOR", market.MarketToken.Hash(), BoolWord(true)), improving),
			parameter(DataStoreKey("POSITION_FEE_FACTOR", market.MarketToken.Hash(), BoolWord(false)), worsening),
			MarketValue{Measure: OpenInterest, Scope: market.MarketToken.Hash(), Token: usdc, IsLong: p.IsLong, Value: ownOI.Int()},
			MarketValue{Measure: OpenInterest, Scope: market.MarketToken.Hash(), Token: eth, IsLong: !p.IsLong, Value: otherOI.Int()})
		col := Price{Min: Pow10(24), Max: Pow10(24)}

		got, err := Judge(p, Circumstances{Rows: rows, Prices: map[chain.Address]Price{eth: index, usdc: col}, FireRatio: fire})
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

func TestJudgeNamesWhatIsMissing(t *testing.T) {
	eth := chain.Address{1}
	p := Position{Market: chain.Address{3}, CollateralToken: eth}
	rows := rowMap{}
	if _, err := Judge(p, Circumstances{Rows: rows}); err == nil {
		t.Error("judged without a market")
	}
	rows.put(Market{MarketToken: chain.Address{3}, IndexToken: eth, LongToken: eth, ShortToken: eth})
	if _, err := Judge(p, Circumstances{Rows: rows}); err == nil {
		t.Error("judged without a price")
	}
	huge := Price{Min: Uint{}.Add(maxMagnitude), Max: maxMagnitude}
	p.CollateralAmount = maxMagnitude
	if _, err := Judge(p, Circumstances{Rows: rows, Prices: map[chain.Address]Price{eth: huge}}); err == nil {
		t.Error("judged where the contract's arithmetic reverts")
	}
}
