package due

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// deep gives a market pools of a thousand long tokens' worth and as much in the short one, fees of 0.1 %, and no
// impact.
func deep(m *Moment, market perp.Market, long chain.Uint) {
	all := m.Rows.(rows)
	put := func(r perp.Row) { all[r.RowKey()] = r }
	own := market.MarketToken.Hash()
	set := func(v chain.Uint, name string, args ...chain.Hash) {
		put(perp.Parameter{Key: perp.DataStoreKey(name, args...), Value: v.Bytes32()})
	}
	short := long.MulDiv(m.Quotes[market.LongToken].Min, m.Quotes[market.ShortToken].Min)
	for token, amount := range map[chain.Address]chain.Uint{market.LongToken: long, market.ShortToken: short} {
		put(perp.MarketValue{Measure: perp.PoolAmount, Scope: own, Token: token, Value: amount.Int()})
		set(amount.Mul(chain.U64(10)), "MAX_POOL_AMOUNT", own, token.Hash())
	}
	for _, is := range []bool{false, true} {
		set(chain.Pow10(27), "SWAP_FEE_FACTOR", own, perp.BoolWord(is))
		set(perp.One, "RESERVE_FACTOR", own, perp.BoolWord(is))
		for _, kind := range []string{"MAX_PNL_FACTOR_FOR_DEPOSITS", "MAX_PNL_FACTOR_FOR_WITHDRAWALS"} {
			set(perp.One, "MAX_PNL_FACTOR", perp.BaseKey(kind), own, perp.BoolWord(is))
		}
	}
	set(chain.U64(2).Mul(perp.One), "SWAP_IMPACT_EXPONENT_FACTOR", own)
}

// swapMoment is a moment of a keeper with the role, with deep pools.
func swapMoment() *Moment {
	m := moment()
	m.Rules.FrozenRole = true
	deep(m, ethMarket, chain.Pow10(21))
	deep(m, btcMarket, chain.Pow10(10))
	return m
}

// sellEther is a limit swap of one ETH at $4500 for at least so many dollars' worth. The fee is 0.1 %: 4495.50 come
// out.
func sellEther(dollars uint64, change ...func(*perp.Order)) perp.Order {
	all := append([]func(*perp.Order){func(o *perp.Order) {
		o.InitialCollateralToken, o.InitialCollateralDeltaAmount = eth, chain.Pow10(18)
		o.SwapPath, o.Market = []chain.Address{ethMarket.MarketToken}, chain.Address{}
		o.MinOutputAmount = chain.U64(dollars).Mul(chain.Pow10(6))
	}}, change...)
	return order(perp.LimitSwap, 0, all...)
}

func minimum(units uint64) func(*perp.Order) {
	return func(o *perp.Order) { o.MinOutputAmount = chain.U64(units) }
}

// Limit swaps are for holders of the role alone, also while they are not frozen, and not before their time.
func TestLimitSwapsNeedTheRole(t *testing.T) {
	m := swapMoment()
	if d := m.Order(sellEther(4400), perp.Position{}); !d.Due || !d.Job.Frozen || !d.PriceBorn() {
		t.Errorf("%+v", d)
	}
	later := sellEther(4400, func(o *perp.Order) { o.ValidFromTime = chain.U64(nowMs/1000 + 1) })
	if d := m.Order(later, perp.Position{}); d.Due || !strings.Contains(d.Why, "takes reports from second") {
		t.Errorf("before its time: %s", d.Why)
	}
	old := m.Quotes[usdc]
	old.TimeMs -= 20_000
	m.Quotes[usdc] = old
	if d := m.Order(sellEther(4400), perp.Position{}); d.Due {
		t.Errorf("with a report of before it was made: %s", d.Why)
	}
	m = swapMoment()
	m.Rules.FrozenRole = false
	if d := m.Order(sellEther(4400), perp.Position{}); d.Due ||
		!strings.Contains(d.Why, "does not hold the frozen-order role") {
		t.Errorf("without the role: %s", d.Why)
	}
}

// PIPE-4: a limit swap is due when its output is what it asks for and a margin, and not a unit before; else it is said
// how far it is.
func TestLimitSwapsWaitForTheirOutput(t *testing.T) {
	const out = 4_495_500_000
	for name, c := range map[string]struct {
		order perp.Order
		why   string // empty = due
	}{
		"far below": {sellEther(4000), ""},
		// 44 955 is 0.001 % of itself and of the rest, rounded up
		"at the margin": {sellEther(0, minimum(out-44_955)), ""},
		"one unit more": {sellEther(0, minimum(out-44_953)), "the venue would freeze it"},
		"exactly":       {sellEther(0, minimum(out)), "has to rise by about 0.00 %"},
		"out of reach": {sellEther(4600),
			"its output is 4495500000 (4495.50 USD) of 4600046000 (4600.04 USD) needed (4600000000 and a margin): " +
				"the price of"},
		"by so much":       {sellEther(4600), "has to rise by about 2.32 %"},
		"asks for nothing": {sellEther(0), ""},
		"asks for everything": {sellEther(0,
			func(o *perp.Order) { o.MinOutputAmount = chain.UintFromBytes([]byte(strings.Repeat("\xff", 32))) }),
			"more than there can be"},
		"two hops": {sellEther(0, func(o *perp.Order) { o.SwapPath = append(o.SwapPath, btcMarket.MarketToken) }), ""},
		"a token the market has not": {sellEther(1, func(o *perp.Order) { o.InitialCollateralToken = btc }),
			"the venue would freeze it: its swap ends in InvalidTokenIn"},
		"the same market twice": {sellEther(1, func(o *perp.Order) { o.SwapPath = append(o.SwapPath, o.SwapPath...) }),
			"DuplicatedMarketInSwapPath"},
		"more than the pool": {sellEther(1, func(o *perp.Order) { o.InitialCollateralDeltaAmount = chain.Pow10(22) }),
			"UsdDeltaExceedsPoolValue"},
	} {
		t.Run(name, func(t *testing.T) {
			d := swapMoment().Order(c.order, perp.Position{})
			if d.Due != (c.why == "") || !strings.Contains(d.Why, c.why) {
				t.Errorf("due %v because %q, want %q", d.Due, d.Why, c.why)
			}
		})
	}
	m := swapMoment()
	delete(m.Quotes, usdc)
	if d := m.Order(sellEther(1), perp.Position{}); d.Due ||
		!strings.Contains(d.Why, "no fresh price report of "+usdc.String()) {
		t.Errorf("without a report: %s", d.Why)
	}
}

// A waiting increase whose swap gives too little, or fails, would be frozen with its trigger met; it waits. A market
// order is sent: waiting would lock it.
func TestOrdersWaitForTheirSwap(t *testing.T) {
	through := func(market perp.Market, token chain.Address, amount, least chain.Uint) func(*perp.Order) {
		return func(o *perp.Order) {
			o.SwapPath, o.InitialCollateralToken = []chain.Address{market.MarketToken}, token
			o.InitialCollateralDeltaAmount, o.MinOutputAmount = amount, least
		}
	}
	bitcoin := chain.Pow10(8) // $90 000
	for name, c := range map[string]struct {
		order perp.Order
		why   string
	}{
		"enough": {order(perp.LimitIncrease, 4600, through(btcMarket, btc, bitcoin, chain.U64(80_000_000_000))),
			""},
		"asks for none": {order(perp.LimitIncrease, 4600, through(btcMarket, btc, bitcoin, chain.Uint{})), ""},
		"too little": {order(perp.LimitIncrease, 4600, through(btcMarket, btc, bitcoin, chain.U64(95_000_000_000))),
			"has to rise by about 5.66 %"},
		"stop increase": {order(perp.StopIncrease, 4400,
			through(btcMarket, btc, bitcoin, chain.U64(95_000_000_000))), "the venue would freeze it"},
		"fails": {order(perp.LimitIncrease, 4600, through(btcMarket, eth, bitcoin, chain.Uint{})),
			"InvalidTokenIn"},
		"ends in another token": {order(perp.LimitIncrease, 4600, through(btcMarket, usdc, chain.Pow10(9), chain.Uint{})),
			"is no collateral of its market"},
		"trigger not met": {order(perp.LimitIncrease, 4400,
			through(btcMarket, btc, bitcoin, chain.U64(95_000_000_000))), "does not meet the trigger"},
		"market order": {order(perp.MarketIncrease, 0,
			through(btcMarket, btc, bitcoin, chain.U64(95_000_000_000))), ""},
		"less than it has": {order(perp.LimitIncrease, 4600, minimum(6),
			func(o *perp.Order) { o.InitialCollateralDeltaAmount = chain.U64(5) }), "its output is 5"},
		"nothing in, less out": {order(perp.LimitIncrease, 4600, minimum(6)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := swapMoment().Order(c.order, perp.Position{})
			if d.Due != (c.why == "") || !strings.Contains(d.Why, c.why) {
				t.Errorf("due %v because %q, want %q", d.Due, d.Why, c.why)
			}
		})
	}
	m := swapMoment()
	disabled := perp.DataStoreKey("IS_MARKET_DISABLED", ethMarket.MarketToken.Hash())
	m.Rows.(rows)[perp.RowKey{Table: perp.Parameters, Key: disabled}] =
		perp.Parameter{Value: perp.BoolWord(true)}
	if d := m.Order(order(perp.LimitIncrease, 4600), perp.Position{}); d.Due ||
		!strings.Contains(d.Why, "is disabled") {
		t.Errorf("disabled market: %s", d.Why)
	}
}

// drawVenue changes prices, pools and parameters as blocks and ticks do.
func drawVenue(t *rapid.T, m *Moment) *Moment {
	all := m.Rows.(rows)
	next := &Moment{Block: m.Block, Rows: all, Rules: m.Rules, Quotes: map[chain.Address]Quote{}}
	for _, token := range []chain.Address{eth, btc, usdc} {
		q := m.Quotes[token]
		step := rapid.SampledFrom([]uint64{990_000, 999_000, 999_999, 1_000_000, 1_000_001, 1_001_000, 1_010_000,
			1_200_000}).Draw(t, "step")
		q.Min = q.Min.MulDiv(chain.U64(step), chain.U64(1_000_000))
		q.Max = q.Min.MulDiv(chain.U64(1_000_000+rapid.Uint64Range(0, 2_000).Draw(t, "spread")), chain.U64(1_000_000))
		next.Quotes[token] = q
	}
	for _, market := range []perp.Market{ethMarket, btcMarket} {
		own := market.MarketToken.Hash()
		set := func(v chain.Uint, name string, args ...chain.Hash) {
			p := perp.Parameter{Key: perp.DataStoreKey(name, args...), Value: v.Bytes32()}
			all[p.RowKey()] = p
		}
		if rapid.IntRange(0, 4).Draw(t, "parameters") == 0 {
			set(chain.U64(rapid.Uint64Range(9, 22).Draw(t, "exponent")).Mul(chain.Pow10(29)),
				"SWAP_IMPACT_EXPONENT_FACTOR", own)
			for _, is := range []bool{false, true} {
				set(chain.U64(rapid.Uint64Range(0, 20).Draw(t, "fee")).Mul(chain.Pow10(26)), "SWAP_FEE_FACTOR", own,
					perp.BoolWord(is))
				set(chain.U64(rapid.Uint64Range(0, 500).Draw(t, "impact")).Mul(chain.Pow10(20)), "SWAP_IMPACT_FACTOR",
					own, perp.BoolWord(is))
			}
		}
		for _, token := range []chain.Address{market.LongToken, market.ShortToken} {
			for _, measure := range []perp.Measure{perp.PoolAmount, perp.SwapImpactPoolAmount} {
				key := perp.MarketValueKey(measure, own, token, false)
				v, known := all[key].(perp.MarketValue)
				if !known {
					pool, _ := all[perp.MarketValueKey(perp.PoolAmount, own, token, false)].(perp.MarketValue)
					v = pool
					v.Measure = measure
				}
				factor := rapid.SampledFrom([]uint64{800, 990, 1_000, 1_001, 1_200}).Draw(t, "pool")
				v.Value = v.Value.Uint().MulDiv(chain.U64(factor), chain.U64(1_000)).Int()
				all[key] = v
			}
		}
	}
	return next
}

// LIQ-2: whatever becomes of prices, pools, parameters and orders, the index names every swap that the dumb twin, which
// judges all of them, finds due.
func TestSwapsPassOverNone(t *testing.T) {
	dueOnes, looked, all := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		base := swapMoment()
		var index Swaps
		twin := map[chain.Hash]perp.Order{}
		paths := [][]chain.Address{{ethMarket.MarketToken}, {btcMarket.MarketToken},
			{ethMarket.MarketToken, btcMarket.MarketToken},
			{btcMarket.MarketToken, ethMarket.MarketToken}, {ethMarket.MarketToken, ethMarket.MarketToken}, {{99}}, {}}
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "orders") {
				key := chain.Hash{byte(rapid.IntRange(0, 12).Draw(t, "order"))}
				if rapid.IntRange(0, 5).Draw(t, "goes") == 0 {
					index.Remove(key)
					delete(twin, key)
					continue
				}
				o := sellEther(0, func(o *perp.Order) {
					o.Key, o.SwapPath = key, rapid.SampledFrom(paths).Draw(t, "path")
					o.InitialCollateralToken = rapid.SampledFrom([]chain.Address{eth, eth, usdc, btc}).Draw(t, "token")
					dollars := rapid.SampledFrom([]uint64{0, 10, 4_500, 200_000}).Draw(t, "worth")
					worth := chain.U64(dollars).Mul(perp.One)
					o.InitialCollateralDeltaAmount = worth.Div(base.Quotes[o.InitialCollateralToken].Min)
					// It asks for about what it gives now.
					if out, err := swapOf(*o).Execute(base.Rows, base.prices()); err == nil {
						o.MinOutputAmount = out.AmountOut.MulDiv(chain.U64(rapid.Uint64Range(997, 1_010).
							Draw(t, "asks")), chain.U64(1_000))
					}
				})
				index.Put(o)
				twin[key] = o
			}
			base = drawVenue(t, base)
			m := &Moment{Block: base.Block, Rows: base.Rows, Rules: base.Rules, Quotes: maps.Clone(base.Quotes)}
			if rapid.IntRange(0, 9).Draw(t, "report is missing") == 0 {
				delete(m.Quotes, rapid.SampledFrom([]chain.Address{eth, btc, usdc}).Draw(t, "token"))
			}
			reached := map[chain.Hash]bool{}
			index.Reached(m, func(o perp.Order) {
				if _, known := twin[o.Key]; !known || reached[o.Key] {
					t.Fatalf("order %x is gone, or named twice", o.Key[:1])
				}
				reached[o.Key] = true
			})
			for key, o := range twin {
				d := m.Order(o, perp.Position{})
				if d.Due && !reached[key] {
					t.Fatalf("a swap is passed over: %s", d.Why)
				}
				if d.Due {
					dueOnes++
				}
			}
			index.Missed(m, func(o perp.Order) { t.Fatalf("order %x is called missed", o.Key[:1]) })
			looked, all = looked+len(reached), all+len(twin)
		}
	})
	if dueOnes == 0 || dueOnes == all {
		t.Errorf("of %d swaps %d were due: the test compares nothing", all, dueOnes)
	}
	t.Logf("%d looks at %d swaps, %d due", looked, all, dueOnes)
}

// A fee is rounded down to whole units: of a small amount, or of a token with few decimals, none is taken.
func TestSmallSwapIsNotPassedOver(t *testing.T) {
	m := swapMoment()
	o := sellEther(0, func(o *perp.Order) {
		o.InitialCollateralToken, o.InitialCollateralDeltaAmount = btc, chain.U64(999) // of 8 decimals
		o.SwapPath = []chain.Address{btcMarket.MarketToken}
	})
	out, err := swapOf(o).Execute(m.Rows, m.prices())
	if err != nil {
		t.Fatal(err)
	}
	o.MinOutputAmount = out.AmountOut.MulDiv(chain.U64(99_998), chain.U64(100_000))
	if d := m.Order(o, perp.Position{}); !d.Due {
		t.Fatalf("the case is none: %s", d.Why)
	}
	var index Swaps
	index.Put(o)
	index.Missed(m, func(perp.Order) { t.Error("it is passed over until the next sweep") })
}

// Swaps far from what they ask for are not looked at, while prices and pools move a little.
func TestSwapsFilter(t *testing.T) {
	m := swapMoment()
	var index Swaps
	for i := range uint64(100) {
		index.Put(sellEther(4450+i, func(o *perp.Order) { o.Key = chain.Hash{byte(i)} }))
	}
	count := func(m *Moment) (n int) {
		index.Reached(m, func(perp.Order) { n++ })
		return n
	}
	if n := count(m); n != 46 {
		t.Errorf("%d are looked at, want those of 4450 to 4495", n)
	}
	q := m.Quotes[eth]
	q.Min, q.Max = dollarsPerEther(4480), dollarsPerEther(4480)
	lower := &Moment{Block: m.Block, Rows: m.Rows, Rules: m.Rules,
		Quotes: map[chain.Address]Quote{eth: q, usdc: m.Quotes[usdc]}}
	if n := count(lower); n != 26 {
		t.Errorf("%d are looked at, want those of 4450 to 4475", n)
	}
	for tokens, want := range map[chain.Address]bool{eth: true, usdc: true, btc: false} {
		if index.Follows(m.Rows, map[chain.Address]bool{tokens: true}) != want {
			t.Errorf("follows %s: want %v", tokens, want)
		}
	}
}

// A swap that the index would miss is told of by the sweep, and from then on found.
func TestAMissedSwapIsFoundFromThenOn(t *testing.T) {
	m := swapMoment()
	var index Swaps
	o := sellEther(4400)
	index.Put(o)
	index.Reached(m, func(perp.Order) {})
	w := index.orders[o.Key]
	w.group.byPrice.Put(w, -1e9) // as if its judging price had been computed wrongly
	for _, want := range []int{1, 0} {
		missed := 0
		index.Missed(m, func(perp.Order) { missed++ })
		if missed != want {
			t.Errorf("%d are missed, want %d", missed, want)
		}
	}
}
