package perp

import (
	"errors"
	"testing"

	"perpkeeper/pkg/chain"
)

// fundedMarket is a market whose longs are three times its shorts, with adaptive funding: a skew of one half that moves
// the factor by 10^20 a second, at most to 10^24; shown is at least 10^21.
func fundedMarket(more ...Event) []Event {
	set := func(v chain.Uint, name string) Event {
		return ParameterSet{Parameter{Key: DataStoreKey(name, market.Hash()), Value: v.Bytes32(), Source: FromEvent}}
	}
	return append([]Event{
		MarketListed{Market{MarketToken: market, IndexToken: chain.Address{0xe7}, LongToken: chain.Address{0xe7},
			ShortToken: usdc}},
		set(One, "FUNDING_EXPONENT_FACTOR"),
		set(chain.U64(2).Mul(chain.Pow10(20)), "FUNDING_INCREASE_FACTOR_PER_SECOND"),
		set(chain.Pow10(20), "FUNDING_DECREASE_FACTOR_PER_SECOND"),
		set(chain.Pow10(24), "MAX_FUNDING_FACTOR_PER_SECOND"),
		set(chain.Pow10(21), "MIN_FUNDING_FACTOR_PER_SECOND"),
		set(chain.U64(4).Mul(chain.Pow10(29)), "THRESHOLD_FOR_STABLE_FUNDING"),
		set(chain.Pow10(29), "THRESHOLD_FOR_DECREASE_FUNDING"), interestOf(true, 300), interestOf(false, 100),
	}, more...)
}

func interestOf(isLong bool, thousands uint64) Event {
	return MarketValued{Values: []MarketValue{measure(OpenInterest, usdc, isLong, dollars(thousands*1_000, 0))}}
}

// funded is a Funding event of a second that shows a factor.
func funded(second uint64, shown chain.Uint) Event {
	v := measure(FundingFactorPerSecond, noToken, false, shown)
	v.Stamp = Stamp{Block: second, TimeMs: second * 1000}
	return MarketValued{Values: []MarketValue{v}}
}

// Swap orders report funding of no market, and a fold may not know a market yet: nothing is saved.
func TestFundingOfNoMarket(t *testing.T) {
	nowhere := MarketValued{Values: []MarketValue{{Measure: FundingFactorPerSecond, Value: chain.I64(5)}}}
	b := mustApply(t, nowhere, funded(100, chain.Pow10(22)))
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
				put(measure(PoolAmount, usdc, false, chain.Uint{}))
		},
		"a factor ahead of its side": func(_ *Circumstances, p *Position) { p.BorrowingFactor = chain.Pow10(40) },
		"funding ahead of its side": func(_ *Circumstances, p *Position) {
			p.FundingFeeAmountPerSize = chain.Pow10(40)
		},
		"a size of no tokens": func(_ *Circumstances, p *Position) { p.SizeInTokens = chain.Uint{} },
		"a reserve of nothing": func(c *Circumstances, _ *Position) {
			c.Rows.(rowMap).put(parameter(DataStoreKey("OPEN_INTEREST_RESERVE_FACTOR", market.Hash(), BoolWord(true)),
				chain.Uint{}))
		},
	} {
		c, p := openMarket()
		change(&c, &p)
		view := NewView(c)
		if v, err := view.Judge(p); !errors.Is(err, chain.ErrArithmetic) {
			t.Errorf("%s: judged %+v, %v", name, v, err)
		}
		if _, found, err := view.Liquidatable(p); found || !errors.Is(err, chain.ErrArithmetic) {
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
		if borrowed != chain.Pow10(26) || paid != chain.Pow10(15) {
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
		if after, _ := then.Borrowing(isLong); after != before.Add(perSecond.Mul(chain.U64(later))) ||
			perSecond.IsZero() {
			t.Errorf("borrowing of longs %v grew from %s to %s, by %s a second", isLong, before, after, perSecond)
		}
		for _, token := range now.Market().Tokens() {
			before, perSecond := now.Funding(isLong, token)
			most := before.Add(perSecond.Mul(chain.U64(later))).Add(chain.U64(3))
			if after, _ := then.Funding(isLong, token); most.Less(after) ||
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

// The handlers of v2.2c add these rules; v2.2b's go on beside them, each by its own words and with one saved factor.
func TestSavedFundingFactorByHandler(t *testing.T) {
	unit := chain.Pow10(20)
	shown := func(n uint64) chain.Uint { return chain.U64(n).Mul(unit) }
	units := func(n int64) chain.Int { return chain.I64(n).Mul(unit.Int()) }
	old, young := chain.Address{0xb}, chain.Address{0xc}
	set := func(v chain.Uint, name string, args ...chain.Hash) Event {
		key := DataStoreKey(name, append([]chain.Hash{market.Hash()}, args...)...)
		return ParameterSet{Parameter{Key: key, Value: v.Bytes32(), Source: FromEvent}}
	}
	by := func(handler chain.Address, second uint64, shown chain.Uint) Event {
		e := funded(second, shown).(MarketValued)
		e.Handler = handler
		return e
	}
	of := func(v Version, handler chain.Address) Event { return ParameterSet{HandlerVersion(handler, v)} }
	bounds := []Event{of(V22b, old), of(V22c, young),
		set(shown(40), "MAX_FUNDING_FACTOR_PER_SECOND", BoolWord(true)),
		set(shown(30), "MAX_FUNDING_FACTOR_PER_SECOND", BoolWord(false)),
		set(shown(12), "MIN_FUNDING_FACTOR_PER_SECOND", BoolWord(true)),
		set(shown(2), "MIN_FUNDING_FACTOR_PER_SECOND", BoolWord(false)),
	}
	floor := set(shown(5), "MIN_FUNDING_INCREASE_RATE_PER_SECOND")
	static := set(chain.Uint{}, "FUNDING_INCREASE_FACTOR_PER_SECOND")
	for name, test := range map[string]struct {
		events []Event
		want   chain.Int
	}{
		"kept while a side is empty": {[]Event{by(young, 100, shown(12)), by(young, 130, shown(30)),
			interestOf(false, 0), by(young, 140, shown(30))}, units(30)},
		"with its sign": {[]Event{interestOf(false, 900), by(young, 100, shown(2)), by(young, 120, shown(20)),
			interestOf(true, 0), by(young, 140, shown(20))}, units(-20)},
		"and goes on when the side is back, without the time between": {[]Event{by(young, 100, shown(12)),
			by(young, 120, shown(20)), interestOf(false, 0), by(young, 900, shown(20)), interestOf(false, 100),
			by(young, 905, shown(25))}, units(25)},
		"lost by a handler of before": {[]Event{by(young, 100, shown(12)), by(young, 130, shown(30)),
			interestOf(false, 0), by(old, 140, chain.Uint{})}, units(0)},
		"shown below the minimum of an empty market": {[]Event{by(young, 100, shown(12)), by(young, 107, shown(12)),
			interestOf(false, 0), by(young, 140, shown(7))}, units(7)},
		"kept by a static market with an empty side": {[]Event{by(young, 100, shown(12)), by(young, 130, shown(30)),
			interestOf(false, 0), static, by(young, 140, shown(30))}, units(30)},
		"until both sides are there": {[]Event{by(young, 100, shown(12)), by(young, 130, shown(30)),
			interestOf(false, 0), static, by(young, 140, shown(30)), interestOf(false, 100),
			by(young, 150, chain.Uint{})}, units(0)},
		"bounded by the side that pays": {[]Event{by(young, 100, shown(12)), by(young, 190, shown(40))}, units(40)},
		"and by the other's when the others pay": {[]Event{interestOf(false, 900), by(young, 100, shown(2)),
			by(young, 190, shown(30))}, units(-30)},
		"handlers of before are bounded by the market's": {[]Event{by(old, 100, shown(10)), by(old, 190, shown(90))},
			units(90)},
		"one saved factor for both": {[]Event{by(old, 100, shown(10)), by(old, 190, shown(90)),
			by(young, 191, shown(40)), by(old, 192, shown(41))}, units(41)},
		"no bound means no funding, and nothing is saved": {[]Event{by(young, 100, shown(12)),
			by(young, 130, shown(30)), set(chain.Uint{}, "MAX_FUNDING_FACTOR_PER_SECOND", BoolWord(true)),
			by(young, 131, chain.Uint{})}, units(0)},
		"the floor of the increase": {[]Event{floor, by(young, 100, shown(12)), by(young, 104, shown(20))}, units(20)},
		"which turns the sign at once": {[]Event{by(young, 100, shown(12)), by(young, 130, shown(30)),
			interestOf(false, 900), floor, by(young, 140, shown(20))}, units(-20)},
		"and is none between equal sides": {[]Event{by(young, 100, shown(12)), by(young, 130, shown(30)),
			interestOf(false, 300), floor, by(young, 140, shown(30))}, units(30)},
		"nor for handlers of before": {[]Event{floor, by(old, 100, shown(10)), by(old, 115, shown(15))}, units(15)},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustApply(t, fundedMarket(append(bounds, test.events...)...)...)
			key := MarketValueKey(SavedFundingFactorPerSecond, market.Hash(), noToken, false)
			if got := row[MarketValue](t, b, key).Value; got != test.want {
				t.Errorf("saved %s, want %s", got, test.want)
			}
		})
	}
}

// The rule is never guessed: funding that a handler of an unknown version reports is no event that can follow.
func TestFundingOfAnUnknownHandler(t *testing.T) {
	b := mustApply(t, fundedMarket()...)
	e := funded(100, chain.Pow10(22)).(MarketValued)
	e.Handler = chain.Address{0xc}
	if err := Apply(b, e); !errors.Is(err, ErrContradiction) {
		t.Errorf("got %v", err)
	}
}

// Adaptive funding can reach the most that a side pays, by the rule of the handler that would be called.
func TestGrowthIsBoundedByTheVersionInForce(t *testing.T) {
	long, short := chain.U64(3).Mul(chain.Pow10(24)), chain.U64(2).Mul(chain.Pow10(24))
	c, _ := openMarket()
	rows := c.Rows.(rowMap)
	rows.put(parameter(DataStoreKey("FUNDING_INCREASE_FACTOR_PER_SECOND", market.Hash()), One),
		parameter(DataStoreKey("MAX_FUNDING_FACTOR_PER_SECOND", market.Hash()), One),
		parameter(DataStoreKey("MAX_FUNDING_FACTOR_PER_SECOND", market.Hash(), BoolWord(true)), long),
		parameter(DataStoreKey("MAX_FUNDING_FACTOR_PER_SECOND", market.Hash(), BoolWord(false)), short))
	for version, want := range map[Version][2]chain.Uint{V22b: {One, One}, V22c: {short, long}} {
		rows.put(HandlerVersion(chain.Address{}, version))
		terms := mustTerms(t, c)
		price, _ := terms.Price(usdc)
		for _, isLong := range []bool{false, true} {
			_, got := terms.Funding(isLong, usdc)
			if want := want[index(isLong)].MulDivUp(chain.Pow10(15), price.Max); got != want {
				t.Errorf("%s, long %v: %s, want %s", version, isLong, got, want)
			}
		}
	}
}
