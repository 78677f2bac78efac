package due

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

var (
	eth, btc, usdc = chain.Address{1}, chain.Address{2}, chain.Address{3}
	ethMarket      = perp.Market{MarketToken: chain.Address{10}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	btcMarket      = perp.Market{MarketToken: chain.Address{11}, IndexToken: btc, LongToken: btc, ShortToken: usdc}
	alice          = chain.Address{20}
)

const nowMs = 1_700_000_000_000

type rows map[perp.RowKey]perp.Row

func (r rows) Get(k perp.RowKey) perp.Row { return r[k] }

func dollarsPerEther(usd uint64) chain.Uint { return chain.U64(usd).Mul(chain.Pow10(12)) }

func quote(price chain.Uint) Quote {
	return Quote{Price: perp.Price{Min: price, Max: price}, TimeMs: nowMs, ID: "report"}
}

// moment is nowMs with ETH at $4500 and nothing known of the exchange but two markets and 1 % of required collateral.
func moment() *Moment {
	all := rows{}
	for _, row := range []perp.Row{
		ethMarket, btcMarket,
		perp.Parameter{Key: perp.DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", ethMarket.MarketToken.Hash()),
			Value: chain.Pow10(28).Bytes32()},
		perp.Parameter{Key: perp.DataStoreKey("REQUEST_EXPIRATION_TIME"), Value: chain.U64(300).Bytes32()},
		perp.MarketValue{Measure: perp.OpenInterest, Scope: ethMarket.MarketToken.Hash(), Token: usdc, IsLong: true,
			Value: chain.U64(40_000).Mul(perp.One).Int()},
	} {
		all[row.RowKey()] = row
	}
	return &Moment{
		Block: chain.BlockRef{Number: 7, Hash: chain.Hash{7}, TimeMs: nowMs}, Generation: 1, Rows: all,
		Rules: Rules{FireRatio: perp.One},
		Quotes: map[chain.Address]Quote{
			eth: quote(dollarsPerEther(4500)), btc: quote(chain.U64(9).Mul(chain.Pow10(26))),
			usdc: quote(chain.Pow10(24)),
		},
	}
}

func order(kind perp.OrderType, trigger uint64, change ...func(*perp.Order)) perp.Order {
	o := perp.Order{
		Key: chain.Hash{byte(kind), byte(trigger)}, Account: alice, Market: ethMarket.MarketToken,
		InitialCollateralToken: usdc, OrderType: kind,
		IsLong: true, TriggerPrice: dollarsPerEther(trigger), UpdatedAtTime: chain.U64(nowMs/1000 - 10),
		Status: perp.Created, Changes: 1,
		Birth: perp.Stamp{TimeMs: nowMs - 10_000},
	}
	if kind.IsIncrease() {
		o.AcceptablePrice = dollarsPerEther(1_000_000)
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// long is a long of $10 000 opened at $5000 with so many dollars of collateral.
func long(collateralUSD uint64) perp.Position {
	p := perp.Position{
		Account: alice, Market: ethMarket.MarketToken, CollateralToken: usdc, IsLong: true, Status: perp.Active,
		Changes:   1,
		SizeInUsd: chain.U64(10_000).Mul(perp.One), SizeInTokens: chain.U64(2).Mul(chain.Pow10(18)),
		CollateralAmount: chain.U64(collateralUSD).Mul(chain.Pow10(6)), IncreasedAtTime: chain.U64(nowMs/1000 - 100),
	}
	p.PositionKey = perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
	return p
}

// PIPE-4: what is executable is due; everything else says why not.
func TestOrders(t *testing.T) {
	status := func(s perp.Status) func(*perp.Order) { return func(o *perp.Order) { o.Status = s } }
	for name, c := range map[string]struct {
		order perp.Order
		why   string // empty = due
	}{
		"market order":          {order(perp.MarketIncrease, 0), ""},
		"limit above the price": {order(perp.LimitIncrease, 4600), ""},
		"limit below the price": {order(perp.LimitIncrease, 4400), "does not meet the trigger"},
		"take profit reached":   {order(perp.LimitDecrease, 4400), ""},
		"stop loss reached":     {order(perp.StopLossDecrease, 4600), ""},
		"stop loss not reached": {order(perp.StopLossDecrease, 4400), "does not meet the trigger"},
		"stop increase reached": {order(perp.StopIncrease, 4400), ""},
		"updated":               {order(perp.MarketDecrease, 0, status(perp.Updated)), ""},
		"executed":              {order(perp.MarketIncrease, 0, status(perp.Executed)), "it is Executed"},
		"frozen, without the role": {order(perp.LimitIncrease, 4600, status(perp.Frozen)),
			"does not hold the frozen-order role"},
		"expired market order": {order(perp.MarketIncrease, 0,
			func(o *perp.Order) { o.UpdatedAtTime = chain.U64(nowMs/1000 - 301) }),
			"it can only be cancelled"},
		"not valid yet": {order(perp.LimitIncrease, 4600,
			func(o *perp.Order) { o.ValidFromTime = chain.U64(nowMs/1000 + 60) }), "takes reports from second"},
		"stop loss without a position": {order(perp.StopLossDecrease, 4400, func(o *perp.Order) { o.IsLong = false }),
			"its position is not open"},
		"unknown market on its path": {order(perp.MarketIncrease, 0,
			func(o *perp.Order) { o.SwapPath = []chain.Address{{99}} }), "is not known"},
		"limit swap, without the role": {order(perp.LimitSwap, 0,
			func(o *perp.Order) { o.SwapPath = []chain.Address{btcMarket.MarketToken} }),
			"does not hold the frozen-order role"},
		"price worse than acceptable": {order(perp.LimitIncrease, 4600, func(o *perp.Order) {
			o.AcceptablePrice, o.SizeDeltaUsd = dollarsPerEther(4499), perp.One
		}), "the venue would freeze the order"},
		"collateral alone, at any price": {order(perp.LimitIncrease, 4600,
			func(o *perp.Order) { o.AcceptablePrice = dollarsPerEther(4499) }), ""},
		"market order worse than acceptable is sent": {order(perp.MarketIncrease, 0,
			func(o *perp.Order) { o.AcceptablePrice = dollarsPerEther(1) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			position := perp.Position{}
			if c.order.IsLong {
				position = long(5000)
			}
			d := moment().Order(c.order, position)
			if d.Due != (c.why == "") || !strings.Contains(d.Why, c.why) || d.Why == "" {
				t.Errorf("due %v because %q, want %q", d.Due, d.Why, c.why)
			}
			if d.Job.ID != job.OrderID(c.order.Key, 1) {
				t.Errorf("id %s", d.Job.ID)
			}
		})
	}
}

// A keeper with the role executes frozen orders too, and says so in the job.
func TestFrozenOrdersNeedTheRole(t *testing.T) {
	m := moment()
	m.Rules.FrozenRole = true
	d := m.Order(order(perp.LimitIncrease, 4600, func(o *perp.Order) { o.Status = perp.Frozen }), perp.Position{})
	if !d.Due || !d.Job.Frozen {
		t.Errorf("%+v", d)
	}
}

// The parts of a TWAP order are ordinary orders that nothing but their creation links: each is due from its own time
// on.
func TestTwapParts(t *testing.T) {
	const first, interval = nowMs/1000 - 60, 60
	var parts []perp.Order
	for i := range uint64(3) {
		parts = append(parts, order(perp.LimitIncrease, 4600, func(o *perp.Order) {
			o.Key[31], o.ValidFromTime = byte(i), chain.U64(first+i*interval)
		}))
	}
	for passed, want := range map[uint64]int{0: 2, 59: 2, 60: 3} {
		m, due := moment(), 0
		for token, q := range m.Quotes {
			q.TimeMs += passed * 1000
			m.Quotes[token] = q
		}
		for _, part := range parts {
			if m.Order(part, perp.Position{}).Due {
				due++
			}
		}
		if due != want {
			t.Errorf("%d s later %d parts are due, want %d", passed, due, want)
		}
	}
}

// What the venue would cancel or freeze because a market that it touches is disabled is not due, and is again when the
// market is open; a position is liquidatable all the same, and the venue is asked.
func TestDisabledMarkets(t *testing.T) {
	path := func(o *perp.Order) { o.SwapPath = []chain.Address{btcMarket.MarketToken} }
	deposit := perp.Request{Kind: perp.Deposit, Key: chain.Hash{1}, Market: ethMarket.MarketToken,
		UpdatedAtTime: chain.U64(nowMs / 1000), Status: perp.Created,
		Fields: perp.Fields{"longTokenSwapPath": []chain.Address{btcMarket.MarketToken}}}
	for name, decide := range map[string]func(*Moment) Decision{
		"market order": func(m *Moment) Decision { return m.Order(order(perp.MarketDecrease, 0, path), long(5000)) },
		"take profit": func(m *Moment) Decision {
			return m.Order(order(perp.LimitDecrease, 4400, path), long(5000))
		},
		"deposit":        func(m *Moment) Decision { return m.Request(deposit) },
		"liquidation":    func(m *Moment) Decision { return m.Position(long(1050)) },
		"of its account": func(m *Moment) Decision { return m.Order(order(perp.MarketIncrease, 0), perp.Position{}) },
	} {
		for _, market := range []perp.Market{ethMarket, btcMarket} {
			m := moment()
			all, _ := m.Rows.(rows)
			closed := perp.Parameter{Key: perp.DisabledKey(market.MarketToken), Value: perp.BoolWord(true)}
			all[closed.RowKey()] = closed
			due := name == "liquidation" || name == "of its account" && market == btcMarket
			says := market.MarketToken.Hex() + " is disabled"
			if d := decide(m); d.Due != due || !due && !strings.Contains(d.Why, says) {
				t.Errorf("%s, market %s disabled: due %t because %q", name, market.MarketToken, d.Due, d.Why)
			}
			closed.Value = chain.Hash{}
			all[closed.RowKey()] = closed
			if d := decide(m); !d.Due {
				t.Errorf("%s, market %s open again: %q", name, market.MarketToken, d.Why)
			}
		}
	}
}

func TestJobCarriesWhatTheSenderNeeds(t *testing.T) {
	m := moment()
	o := order(perp.MarketIncrease, 0, func(o *perp.Order) { o.SwapPath = []chain.Address{btcMarket.MarketToken} })
	d := m.Order(o, perp.Position{})
	j := d.Job
	if !slices.Equal(j.Tokens, []chain.Address{eth, usdc, btc}) {
		t.Errorf("tokens %v", j.Tokens)
	}
	if d.PriceBorn() || j.Class != job.ClassMarketOrder || j.DueSinceMs != nowMs-10_000 || j.ExpiresMs != nowMs-10_000+
		300_000 {
		t.Errorf("%+v", j)
	}
	if j.Evidence.Block != m.Block || len(j.Evidence.Reports) != 3 || j.Evidence.Generation != 1 ||
		j.Evidence.Reason != d.Why {
		t.Errorf("evidence %+v", j.Evidence)
	}
	if !m.Order(order(perp.LimitIncrease, 4600), perp.Position{}).PriceBorn() {
		t.Error("a limit order is born by a price")
	}
}

func TestRequests(t *testing.T) {
	deposit := perp.Request{
		Kind: perp.Deposit, Key: chain.Hash{1}, Account: alice, Market: ethMarket.MarketToken,
		UpdatedAtTime: chain.U64(nowMs / 1000),
		Status:        perp.Created, Fields: perp.Fields{"longTokenSwapPath": []chain.Address{btcMarket.MarketToken}},
	}
	late, done, lost := deposit, deposit, deposit
	late.UpdatedAtTime, done.Status, lost.Market = chain.U64(nowMs/1000-301), perp.Executed, chain.Address{99}
	for why, r := range map[string]perp.Request{"": deposit, "it expired in second": late, "it is Executed": done,
		"is not known": lost} {
		d := moment().Request(r)
		if d.Due != (why == "") || !strings.Contains(d.Why, why) {
			t.Errorf("due %v because %q, want %q", d.Due, d.Why, why)
		}
		if d.Due && (d.Job.ID != job.RequestID(job.Deposit, r.Key) ||
			!slices.Equal(d.Job.Tokens, []chain.Address{eth, usdc, btc})) {
			t.Errorf("%+v", d.Job)
		}
	}
}

// Each reason for leaving a position alone is named.
func TestPositions(t *testing.T) {
	for name, c := range map[string]struct {
		position perp.Position
		change   func(*Moment, *perp.Position)
		why      string
	}{
		"below":  {long(1050), nil, ""},
		"above":  {long(1150), nil, "margin ratio 150.00 %, 150.00 USD remain and 100.00 USD are required"},
		"closed": {long(1050), func(_ *Moment, p *perp.Position) { p.Status = perp.Closed }, "it is Closed"},
		"changed after the report": {long(1050),
			func(_ *Moment, p *perp.Position) { p.IncreasedAtTime = chain.U64(nowMs/1000 + 1) },
			"the position changed in second"},
		"no report": {long(1050), func(m *Moment, _ *perp.Position) { delete(m.Quotes, eth) },
			"no fresh price report"},
		"unknown market": {long(1050), func(_ *Moment, p *perp.Position) { p.Market = chain.Address{99} },
			"is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			m := moment()
			if c.change != nil {
				c.change(m, &c.position)
			}
			d := m.Position(c.position)
			if d.Due != (c.why == "") || !strings.Contains(d.Why, c.why) {
				t.Errorf("due %v because %q, want %q", d.Due, d.Why, c.why)
			}
		})
	}
}

// LIQ-9: a liquidation closes the whole position.
func TestWholePositions(t *testing.T) {
	m := moment()
	if d := m.Position(long(1050)); !d.Due || !d.Job.SizeDeltaUsd.IsZero() {
		t.Errorf("due %t, and closes %s", d.Due, d.Job.SizeDeltaUsd)
	}
}

func TestWords(t *testing.T) {
	for cents, want := range map[uint64]string{0: "0.00", 5: "0.05", 123: "1.23", 1_000_000: "10000.00"} {
		if got := dollars(chain.U64(cents).Mul(chain.Pow10(28))); got != want {
			t.Errorf("%d cents are %q", cents, got)
		}
	}
	if got := signedDollars(chain.U64(7).Mul(chain.Pow10(28)).Int().Neg()); got != "-0.07" {
		t.Errorf("minus seven cents are %q", got)
	}
}

// What is required of a position that has nothing left may be more than a signed number holds: the exchange compares
// nothing with it then, and the decision has words for it.
func TestRequirementBeyondSignedNumbers(t *testing.T) {
	m := moment()
	most := chain.UintFromBytes(bytes.Repeat([]byte{0xff}, 32))
	for _, v := range []perp.Verdict{{Liquidatable: true, MinCollateralUsd: most}, {MinCollateralUsd: most}} {
		if d := m.Judged(long(1050), v); d.Due != v.Liquidatable || !strings.Contains(d.Why, most.String()[:20]) {
			t.Errorf("%+v", d)
		}
	}
}

// The short answer is the long one: for any position, price and time of its last change.
func TestLiquidatableIsPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := moment()
		m.Quotes[eth] = quote(dollarsPerEther(rapid.Uint64Range(4000, 5500).Draw(t, "price")))
		if rapid.IntRange(0, 9).Draw(t, "no report") == 0 {
			delete(m.Quotes, rapid.SampledFrom([]chain.Address{eth, usdc}).Draw(t, "token"))
		}
		p := long(rapid.Uint64Range(0, 2000).Draw(t, "collateral"))
		p.Status = rapid.SampledFrom([]perp.PositionStatus{perp.Active, perp.Active, perp.Active, perp.Closed}).
			Draw(t, "status")
		p.DecreasedAtTime = chain.U64(nowMs/1000 + 1 - rapid.Uint64Range(0, 2).Draw(t, "changed"))
		p.Market = rapid.SampledFrom([]chain.Address{p.Market, p.Market, {99}}).Draw(t, "market")
		if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
			p.SizeInTokens = chain.Uint{}
		}
		if got, want := m.Liquidatable(p), m.Position(p); got != want.Due {
			t.Fatalf("%v, but %s", got, want.Why)
		}
	})
}

// A GLV is valued by all its markets, so executing for it takes the prices of each.
func TestGlvRequestsTakeEveryPrice(t *testing.T) {
	glv := chain.Address{77}
	member := func(m perp.Market, belongs int64) perp.MarketValue {
		return perp.MarketValue{Measure: perp.GlvMarket, Scope: glv.Hash(), Token: m.MarketToken,
			Value: chain.I64(belongs)}
	}
	r := perp.Request{
		Kind: perp.GlvDeposit, Key: chain.Hash{1}, Account: alice, Market: ethMarket.MarketToken,
		UpdatedAtTime: chain.U64(nowMs / 1000),
		Status:        perp.Created, Fields: perp.Fields{"glv": glv},
	}
	for belongs, want := range map[int64][]chain.Address{1: {eth, usdc, btc}, 0: {eth, usdc}} {
		m := moment()
		m.Glvs = GlvsOf(slices.Values([]perp.MarketValue{member(btcMarket, belongs), member(ethMarket, 1),
			{Measure: perp.PoolAmount, Value: chain.I64(5)}}))
		if d := m.Request(r); !d.Due || !slices.Equal(d.Job.Tokens, want) {
			t.Errorf("the BTC market belongs: %d; tokens %v, want %v (%s)", belongs, d.Job.Tokens, want, d.Why)
		}
	}
}
