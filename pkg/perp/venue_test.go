package perp

import (
	"encoding/binary"
	"testing"

	"perpkeeper/pkg/chain"
)

// openMarket is a market of ETH against USDC with every parameter of the rule set to what venues use: exponents,
// adaptive funding, kinked borrowing, virtual inventory, and an hour since the last accrual.
func openMarket() (Circumstances, Position) {
	eth, id := chain.Address{0xe7}, chain.Hash{0x1d}
	m := Market{MarketToken: market, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	const now = 1_800_003_600
	stamp := Stamp{TimeMs: (now - 3600) * 1000}
	rows := rowMap{}
	usd := func(n uint64) chain.Uint { return dollars(n, 0) }
	set := func(v chain.Uint, name string, args ...chain.Hash) {
		rows.put(parameter(DataStoreKey(name, args...), v))
	}
	own := market.Hash()
	rows.put(m)
	set(One, "MIN_COLLATERAL_USD")
	set(chain.Pow10(28), "MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", own)
	set(chain.Pow10(28), "MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS", own)
	set(id32(id), "VIRTUAL_TOKEN_ID", eth.Hash())
	set(chain.Pow10(30), "FUNDING_EXPONENT_FACTOR", own)
	set(chain.U64(2).Mul(chain.Pow10(21)), "FUNDING_INCREASE_FACTOR_PER_SECOND", own)
	set(chain.Pow10(22), "MAX_FUNDING_FACTOR_PER_SECOND", own)
	for n, is := range []bool{false, true} {
		side := BoolWord(is)
		set(chain.U64(4+2*uint64(1-n)).Mul(chain.Pow10(26)), "POSITION_FEE_FACTOR", own, side)
		set(chain.U64(15).Mul(chain.Pow10(19)), "POSITION_IMPACT_FACTOR", own, side)
		set(chain.U64(17).Mul(chain.Pow10(29)), "POSITION_IMPACT_EXPONENT_FACTOR", own, side)
		set(chain.U64(5).Mul(chain.Pow10(27)), "MAX_POSITION_IMPACT_FACTOR", own, side)
		set(chain.U64(9).Mul(chain.Pow10(29)), "MAX_PNL_FACTOR", maxPnlFactorForTraders, own, side)
		set(chain.U64(75).Mul(chain.Pow10(28)), "OPTIMAL_USAGE_FACTOR", own, side)
		set(chain.U64(90).Mul(chain.Pow10(28)), "OPEN_INTEREST_RESERVE_FACTOR", own, side)
		set(chain.U64(14).Mul(chain.Pow10(21)), "BASE_BORROWING_FACTOR", own, side)
		set(chain.U64(35).Mul(chain.Pow10(21)), "ABOVE_OPTIMAL_USAGE_BORROWING_FACTOR", own, side)
		for _, token := range []chain.Address{eth, usdc} {
			rows.put(measure(OpenInterest, token, is, usd(10_000_000+3_000_000*uint64(n))))
			rows.put(measure(OpenInterestInTokens, token, is, chain.U64(2_000+600*uint64(n)).Mul(chain.Pow10(18))))
			rows.put(measure(FundingFeeAmountPerSize, token, is, chain.Pow10(15)))
		}
		accrued := measure(CumulativeBorrowingFactor, noToken, is, chain.Pow10(26))
		accrued.Stamp = stamp
		rows.put(accrued)
	}
	funded := measure(FundingFactorPerSecond, noToken, false, chain.Pow10(21))
	funded.Stamp = stamp
	rows.put(funded, measure(SavedFundingFactorPerSecond, noToken, false, chain.Pow10(21)),
		measure(PoolAmount, eth, false, chain.U64(10_000).Mul(chain.Pow10(18))),
		measure(PoolAmount, usdc, false, chain.U64(50_000_000).Mul(chain.Pow10(6))),
		MarketValue{Measure: VirtualInventoryForPositions, Scope: id, Value: usd(2_000_000).Int().Neg()})
	c := Circumstances{Rows: rows, Time: now, FireRatio: One, Prices: map[chain.Address]Price{
		eth: {Min: dollars(5_050, 18), Max: dollars(5_051, 18)}, usdc: exactly(dollars(1, 6)),
	}}
	p := Position{Market: market, CollateralToken: usdc, IsLong: true, SizeInUsd: usd(50_000),
		SizeInTokens: chain.U64(10).
			Mul(chain.Pow10(18)),
		CollateralAmount: chain.U64(5_000).Mul(chain.Pow10(6)), PendingImpactAmount: chain.I64(-10_000_000),
		BorrowingFactor: chain.Pow10(25)}
	return c, p
}

func id32(h chain.Hash) chain.Uint { return chain.UintFromBytes(h[:]) }

func mustTerms(t testing.TB, c Circumstances) *Terms {
	t.Helper()
	terms, err := NewView(c).Terms(market)
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// BenchmarkJudge is one exact verdict with the market's terms at hand, price impact by powers included.
func BenchmarkJudge(b *testing.B) {
	c, p := openMarket()
	terms := mustTerms(b, c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := terms.judge(p, chain.Uint{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPass is one position's part of a pass over many accounts, few of them in danger.
func BenchmarkPass(b *testing.B) {
	c, p := openMarket()
	view := NewView(c)
	b.ReportAllocs()
	account := uint64(0)
	for b.Loop() {
		account++
		binary.BigEndian.PutUint64(p.Account[:], account)
		if _, found, err := view.Liquidatable(p); found || err != nil {
			b.Fatal(found, err)
		}
	}
}

// BenchmarkTerms is what a pass pays once per market.
func BenchmarkTerms(b *testing.B) {
	c, _ := openMarket()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewView(c).Terms(market); err != nil {
			b.Fatal(err)
		}
	}
}
