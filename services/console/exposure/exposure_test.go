package exposure

import (
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
)

var (
	market = perp.Market{MarketToken: chain.Address{1}, IndexToken: chain.Address{2}, LongToken: chain.Address{2},
		ShortToken: chain.Address{3}}
	cents = chain.Pow10(28)
)

func usd(n uint64) chain.Uint { return chain.U64(n).Mul(perp.One) }

// at is a moment at which the index token, of no decimals, has a price in USD.
func at(price uint64) *due.Moment {
	rows := perp.NewBook()
	rows.Put(market)
	quote := func(p chain.Uint) due.Quote { return due.Quote{Price: perp.Price{Min: p, Max: p}, TimeMs: 2_000_000} }
	return &due.Moment{Rows: rows, At: 2000, Rules: due.Rules{FireRatio: perp.One},
		Quotes: map[chain.Address]due.Quote{market.IndexToken: quote(usd(price)),
			market.ShortToken: quote(cents.Mul(chain.U64(100)))}}
}

func position(n byte, isLong bool, collateral chain.Address, tokens, size, amount uint64) perp.Position {
	return perp.Position{PositionKey: chain.Hash{n}, Account: chain.Address{n}, Market: market.MarketToken,
		CollateralToken: collateral, IsLong: isLong, Status: perp.Active, SizeInUsd: usd(size),
		SizeInTokens: chain.U64(tokens), CollateralAmount: chain.U64(amount)}
}

// In a market without fees the estimate is exact: just before it a position is healthy, just beyond it due by the
// venue's own rule.
func TestTheEstimateIsTheRulesOwnWithoutFees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isLong := rapid.Bool().Draw(t, "long")
		collateral := rapid.SampledFrom([]chain.Address{market.LongToken, market.ShortToken}).Draw(t, "collateral")
		price := rapid.Uint64Range(1_000, 100_000).Draw(t, "price")
		tokens := rapid.Uint64Range(1, 1000).Draw(t, "tokens")
		worth := tokens * price
		amount := max(worth/rapid.Uint64Range(2, 20).Draw(t, "leverage"), 1)
		if collateral == market.LongToken {
			amount = max(amount/price, 1)
		}
		p := position(1, isLong, collateral, tokens, worth, amount)
		found, ok := judge(at(price), p)
		if !ok {
			t.Fatal("not judged")
		}
		bound := found.LiquidationPrice.Div(perp.One)
		whole, fits := bound.Uint64()
		if !fits || whole < 10 || whole > 100*price {
			t.Skip("beyond what a price can be")
		}
		before, beyond := whole+2, whole-2
		if !isLong {
			before, beyond = beyond, before
		}
		for at, want := range map[*due.Moment]bool{at(before): false, at(beyond): true} {
			if v, err := at.View().Judge(p); err != nil || v.Liquidatable != want {
				t.Fatalf("%+v: due %v at %s, want %v (%v); estimated %s", p, v.Liquidatable,
					at.Quotes[market.IndexToken].Min, want, err, found.LiquidationPrice)
			}
		}
	})
}

// The nearest stand first, what cannot be judged is counted, and what is due, or near it, adds up by market.
func TestRanking(t *testing.T) {
	all := []perp.Position{
		position(1, true, market.ShortToken, 10, 10_000, 5_000), // half of it: far away
		position(2, true, market.ShortToken, 10, 10_000, 100),   // 1 %
		position(3, false, market.ShortToken, 10, 10_000, 1_000),
		position(4, true, market.ShortToken, 10, 20_000, 100), // under water
	}
	unknown := position(5, true, market.ShortToken, 1, 1, 1)
	unknown.Market = chain.Address{9}
	r := rank(at(1000), func(yield func(perp.Position) bool) {
		for _, p := range append(all, unknown) {
			if !yield(p) {
				return
			}
		}
	}, 3)
	var order []byte
	for _, p := range r.Nearest {
		order = append(order, p.PositionKey[0])
	}
	if string(order) != string([]byte{4, 2, 3}) || r.Open != 5 || r.Unknown != 1 {
		t.Errorf("%v, %d open, %d unknown", order, r.Open, r.Unknown)
	}
	c := r.Curves
	if len(c) != 1 || c[0].Market != market.MarketToken || c[0].Sizes[0] != usd(20_000) ||
		c[0].Sizes[9] != c[0].Sizes[0] || c[0].Sizes[Steps] != usd(40_000) { // the far one is beyond a quarter
		t.Errorf("curves %+v", c)
	}
}

// A curve rises with the distance, step by step, and ends with the last one; the largest market comes first.
func TestCurves(t *testing.T) {
	all := curves{}
	for n := range byte(3) {
		for k := range uint64(Steps + 2) {
			p := Position{Position: position(n, true, market.ShortToken, 1, uint64(n)+1, 1),
				Distance: perp.One.MulDiv(chain.U64(k*k), chain.U64(10_000))}
			p.Market = chain.Address{n + 1}
			all.count(p)
		}
	}
	whole := all.whole()
	if len(whole) != 3 || whole[0].Market != (chain.Address{3}) {
		t.Fatalf("%+v", whole)
	}
	for k := range uint64(Steps + 1) {
		if whole[0].Sizes[k] != usd(3*(k+1)) || whole[2].Sizes[k] != usd(k+1) {
			t.Errorf("step %d: %s and %s", k, whole[0].Sizes[k], whole[2].Sizes[k])
		}
	}
}
