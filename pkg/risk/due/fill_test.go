package due

import (
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// crowdedBook is a moment in which $40 000 of longs in 8 ETH stand against a pool of $1 000 000, trades are charged for
// 10^-7 of the square of what they unbalance, and the market has the given limits.
func crowdedBook(limits map[string]chain.Uint) *Moment {
	m := moment()
	all, scope := m.Rows.(rows), ethMarket.MarketToken.Hash()
	put := func(r perp.Row) { all[r.RowKey()] = r }
	for _, positive := range []bool{true, false} {
		put(perp.Parameter{Key: perp.DataStoreKey("POSITION_IMPACT_FACTOR", scope, perp.BoolWord(positive)),
			Value: chain.Pow10(23).Bytes32()})
		put(perp.Parameter{
			Key:   perp.DataStoreKey("POSITION_IMPACT_EXPONENT_FACTOR", scope, perp.BoolWord(positive)),
			Value: chain.U64(2).Mul(perp.One).Bytes32(),
		})
	}
	for name, limit := range limits {
		put(perp.Parameter{Key: perp.DataStoreKey(name, scope, perp.BoolWord(true)), Value: limit.Bytes32()})
	}
	put(perp.MarketValue{Measure: perp.OpenInterestInTokens, Scope: scope, Token: usdc, IsLong: true,
		Value: chain.U64(8).Mul(chain.Pow10(18)).Int()})
	put(perp.MarketValue{Measure: perp.PoolAmount, Scope: scope, Token: eth, Value: chain.U64(1_000_000).Mul(perp.One).
		Div(dollarsPerEther(4500)).Int()})
	return m
}

// What the venue would freeze is not due where the venue lets it wait; the same as a market order is.
func TestOrdersThatWouldFreezeWait(t *testing.T) {
	usd := func(n uint64) chain.Uint { return chain.U64(n).Mul(perp.One) }
	percent := func(n uint64) chain.Uint { return chain.U64(n).Mul(chain.Pow10(28)) }
	sized := func(size, acceptable uint64) func(*perp.Order) {
		return func(o *perp.Order) { o.SizeDeltaUsd, o.AcceptablePrice = usd(size), dollarsPerEther(acceptable) }
	}
	short := func(o *perp.Order) { o.IsLong = false }
	for name, c := range map[string]struct {
		limits map[string]chain.Uint
		order  perp.Order
		why    string
	}{
		// 10 000 on top of 40 000: 10^-7 * (50 000^2 - 40 000^2) = 90 USD of 10 000, so 4540.9 USD
		"filled within the acceptable price": {nil, order(perp.LimitIncrease, 4600, sized(10_000, 4541)), ""},
		"the impact makes it too dear": {nil, order(perp.LimitIncrease, 4600, sized(10_000, 4540)),
			"it would be filled at 45408"},
		"a large one is charged more": {nil, order(perp.LimitIncrease, 4600, sized(20_000, 4541)),
			"it would be filled at"},
		"an impact larger than the order": {nil, order(perp.LimitIncrease, 4600, sized(20_000_000, 9000)),
			"no price to fill it at: the price impact is larger than the order"},
		"a short balances and is paid nothing": {nil, order(perp.LimitIncrease, 4400, sized(10_000, 4499), short), ""},
		// closing a long of 10 000 balances: no charge, and no reward where none is allowed
		"take profit at the price": {nil, order(perp.LimitDecrease, 4400, sized(10_000, 4500)),
			""},
		"take profit above the price": {nil, order(perp.LimitDecrease, 4400, sized(10_000, 4501)),
			"it would be filled at 4500000000000000 "},
		"more than the position has closes what it has": {nil, order(perp.StopLossDecrease, 4600, sized(99_999, 4500)),
			""},
		"room for its interest": {map[string]chain.Uint{"MAX_OPEN_INTEREST": usd(50_000)},
			order(perp.LimitIncrease, 4600, sized(10_000, 5000)), ""},
		"no room for its interest": {map[string]chain.Uint{"MAX_OPEN_INTEREST": usd(49_999)},
			order(perp.LimitIncrease, 4600, sized(10_000, 5000)),
			"MaxOpenInterestExceeded"},
		// 8 ETH and 2.2 more at 4500 are 46 000 USD of 1 000 000
		"enough reserve": {map[string]chain.Uint{"RESERVE_FACTOR": percent(5)},
			order(perp.StopIncrease, 4400, sized(10_000, 5000)), ""},
		"too little reserve": {map[string]chain.Uint{"RESERVE_FACTOR": percent(4)},
			order(perp.StopIncrease, 4400, sized(10_000, 5000)),
			"InsufficientReserve: "},
		"too little reserve for interest": {map[string]chain.Uint{"RESERVE_FACTOR": percent(5),
			"OPEN_INTEREST_RESERVE_FACTOR": percent(4)},
			order(perp.StopIncrease, 4400, sized(10_000, 5000)), "InsufficientReserveForOpenInterest"},
		"a market order is sent all the same": {nil, order(perp.MarketIncrease, 0, sized(10_000, 4540)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			position := perp.Position{}
			if c.order.IsLong {
				position = long(5000)
			}
			d := crowdedBook(c.limits).Order(c.order, position)
			if d.Due != (c.why == "") || !strings.Contains(d.Why, c.why) || c.why != "" &&
				!strings.HasPrefix(d.Why, "the venue would freeze the order: ") {
				t.Errorf("due %t because %q, want %q", d.Due, d.Why, c.why)
			}
		})
	}
	var none map[chain.Address]Quote
	m := crowdedBook(nil)
	m.Quotes = none
	if d := m.Order(order(perp.LimitIncrease, 4600, sized(10_000, 5000)), perp.Position{}); d.Due {
		t.Errorf("due without any report: %q", d.Why)
	}
}
