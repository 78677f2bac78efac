package perp

import (
	"errors"
	"testing"

	"perpkeeper/pkg/chain"
)

// fundedMarket is a market whose longs are three times its shorts, with adaptive funding: a skew of one half that moves
// the factor by 10^20 a second, at most to 10^24; shown is at least 10^21.
func fundedMarket(more ...Event) []Event {
	set := func(v Uint, name string) Event {
		return ParameterSet{Parameter{Key: DataStoreKey(name, market.Hash()), Value: v.Bytes32(), Source: FromEvent}}
	}
	return append([]Event{
		MarketListed{Market{MarketToken: market, IndexToken: chain.Address{0xe7}, LongToken: chain.Address{0xe7},
			ShortToken: usdc}},
		set(One, "FUNDING_EXPONENT_FACTOR"), set(U64(2).Mul(Pow10(20)), "FUNDING_INCREASE_FACTOR_PER_SECOND"),
		set(Pow10(20), "FUNDING_DECREASE_FACTOR_PER_SECOND"), set(Pow10(24), "MAX_FUNDING_FACTOR_PER_SECOND"),
		set(Pow10(21), "MIN_FUNDING_FACTOR_PER_SECOND"), set(U64(4).Mul(Pow10(29)), "THRESHOLD_FOR_STABLE_FUNDING"),
		set(Pow10(29), "THRESHOLD_FOR_DECREASE_FUNDING"), interestOf(true, 300), interestOf(false, 100),
	}, more...)
}

func interestOf(isLong bool, thousands uint64) Event {
	return MarketValued{[]MarketValue{measure(OpenInterest, usdc, isLong, dollars(thousands*1_000, 0))}}
}

// funded is a Funding event of a second that shows a factor.
func funded(second uint64, shown Uint) Event {
	v := measure(FundingFactorPerSecond, noToken, false, shown)
	v.Stamp = Stamp{Block: second, TimeMs: second * 1000}
	return MarketValued{[]MarketValue{v}}
}

// The factor that no event carries is what the venue keeps: see the events that show it, and those that do not.
func TestSavedFundingFactor(t *testing.T) {
	unit := Pow10(20)
	shown := func(n uint64) Uint { return U64(n).Mul(unit) }
	units := func(n int64) Int { return I64(n).Mul(unit.Int()) }
	called := func(v Int, block uint64) Event {
		key := DataStoreKey("SAVED_FUNDING_FACTOR_PER_SECOND", market.Hash())
		return ParameterSet{Parameter{Key: key, Value: v.Word(), Source: FromCall, Stamp: Stamp{Block: block}}}
	}
	for name, test := range map[string]struct {
		events []Event
		want   Int
	}{
		"the first event only starts the clock": {[]Event{funded(100, shown(10))}, units(0)},
		"it grows toward the larger side":       {[]Event{funded(100, shown(10)), funded(115, shown(15))}, units(15)},
		"below what is shown": {[]Event{funded(100, shown(10)), funded(104, shown(10)),
			funded(107, shown(10))}, units(7)},
		"up to the most": {[]Event{funded(100, shown(10)), funded(90_000, shown(10_000)),
			funded(90_100, shown(10_000))}, units(10_000)},
		"it turns slowly when the sides do": {[]Event{funded(100, shown(10)), funded(130, shown(30)),
			interestOf(false, 900), funded(135, shown(25))}, units(25)},
		"and beyond zero": {[]Event{funded(100, shown(10)), funded(104, shown(10)),
			interestOf(false, 900), funded(110, shown(10))}, units(-2)},
		"it stays between the thresholds": {[]Event{funded(100, shown(10)), funded(130, shown(30)),
			interestOf(false, 200), funded(190, shown(30))}, units(30)},
		"it falls when the sides are near": {[]Event{funded(100, shown(10)), funded(130, shown(30)),
			interestOf(false, 280), funded(148, shown(12))}, units(12)},
		"never below its sign": {[]Event{funded(100, shown(10)), funded(130, shown(30)), interestOf(false, 290),
			funded(900, shown(10))}, I64(1)},
		"nothing without two sides": {[]Event{funded(100, shown(10)), funded(130, shown(30)), interestOf(false, 0),
			funded(140, Uint{})}, units(0)},
		"a fold that starts later": {[]Event{funded(100, shown(770))}, units(770)},
		"and on the other side":    {[]Event{interestOf(false, 900), funded(100, shown(770))}, units(-770)},
		"what a call saw": {[]Event{funded(100, shown(10)), called(units(-5), 100), funded(102, shown(10))},
			units(-3)},
		"a call of before is over": {[]Event{funded(100, shown(10)), called(units(-5), 99), funded(102, shown(10))},
			units(2)},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustApply(t, fundedMarket(test.events...)...)
			got := row[MarketValue](t, b, MarketValueKey(SavedFundingFactorPerSecond, market.Hash(), noToken, false)).
				Value
			if got != test.want {
				t.Errorf("saved %s, want %s", got, test.want)
			}
		})
	}
}

// Swap orders report funding of no market, and a fold may not know a market yet: nothing is saved.
func TestFundingOfNoMarket(t *testing.T) {
	nowhere := MarketValued{[]MarketValue{{Measure: FundingFactorPerSecond, Value: I64(5)}}}
	b := mustApply(t, nowhere, funded(100, Pow10(22)))
	for _, r := range b.Rows(MarketValues) {
		if r.(MarketValue).Measure == SavedFundingFactorPerSecond {
			t.Errorf("saved %+v", r)
		}
	}
}

// What the venue's own arithmetic refuses is an error and no verdict.
func TestAccrualThatReverts(t *testing.T) {
	for name, change := range map[string]func(*Circumstances, *Position){
		"an empty pool": func(c *Circumstances, _ *Position) {
			c.Rows.(rowMap).
				put(measure(PoolAmount, usdc, false, Uint{}))
		},
		"a factor ahead of its side": func(_ *Circumstances, p *Position) { p.BorrowingFactor = Pow10(40) },
		"funding ahead of its side":  func(_ *Circumstances, p *Position) { p.FundingFeeAmountPerSize = Pow10(40) },
		"a size of no tokens":        func(_ *Circumstances, p *Position) { p.SizeInTokens = Uint{} },
		"a reserve of nothing": func(c *Circumstances, _ *Position) {
			c.Rows.(rowMap).put(parameter(DataStoreKey("OPEN_INTEREST_RESERVE_FACTOR", market.Hash(), BoolWord(true)),
				Uint{}))
		},
	} {
		c, p := openMarket()
		change(&c, &p)
		view := NewView(c)
		if v, err := view.Judge(p); !errors.Is(err, ErrArithmetic) {
			t.Errorf("%s: judged %+v, %v", name, v, err)
		}
		if _, found, err := view.Liquidatable(p); found || !errors.Is(err, ErrArithmetic) {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
	}
}

// A clock behind the state accrues nothing, and no time means the factors as stored.
func TestAccrualNeedsALaterTime(t *testing.T) {
	c, _ := openMarket()
	for _, time := range []uint64{0, 5, c.Time - 3600} {
		c.Time = time
		terms := mustTerms(t, c)
		borrowed, _ := terms.Borrowing(true)
		paid, _ := terms.Funding(true, usdc)
		if borrowed != Pow10(26) || paid != Pow10(15) {
			t.Errorf("at %d: borrowing %s, funding %s", time, borrowed, paid)
		}
	}
}

// What an index builds its filter of bounds the exact growth.
func TestTermsBoundGrowth(t *testing.T) {
	c, _ := openMarket()
	now := mustTerms(t, c)
	const later = 5_000
	c.Time += later
	then := mustTerms(t, c)
	for _, isLong := range []bool{false, true} {
		before, perSecond := now.Borrowing(isLong)
		if after, _ := then.Borrowing(isLong); after != before.Add(perSecond.Mul(U64(later))) || perSecond.IsZero() {
			t.Errorf("borrowing of longs %v grew from %s to %s, by %s a second", isLong, before, after, perSecond)
		}
		for _, token := range now.Market().Tokens() {
			before, perSecond := now.Funding(isLong, token)
			if after, _ := then.Funding(isLong, token); before.Add(perSecond.Mul(U64(later))).Add(U64(3)).Less(after) ||
				after.Less(before) {
				t.Errorf("funding of longs %v in %s grew from %s to %s, by more than %s a second", isLong, token,
					before, after, perSecond)
			}
		}
	}
	if perSize, perSecond := now.Funding(true, chain.Address{9}); !perSize.IsZero() || !perSecond.IsZero() {
		t.Error("funding of a token that is no collateral")
	}
}
