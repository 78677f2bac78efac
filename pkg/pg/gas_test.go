package pg_test

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// A position comes with the open orders that end with it, and with no others.
func TestClosing(t *testing.T) {
	db := pgtest.DB(t)
	p := claim(t, db, 0, 1)
	position := perp.Position{Account: chain.Address{1}, Market: chain.Address{2}, CollateralToken: chain.Address{3},
		IsLong: true, Status: perp.Active}
	position.PositionKey = perp.PositionKey(position.Account, position.Market, position.CollateralToken,
		position.IsLong)
	of := func(n uint64, change func(*perp.Order)) perp.Order {
		o := order(n, perp.Created)
		o.Account, o.Market, o.InitialCollateralToken, o.IsLong, o.AutoCancel = position.Account, position.Market,
			position.CollateralToken, true, true
		change(&o)
		return o
	}
	commit(t, p, follow(chain.BlockRef{Number: 10}, position,
		of(1, func(o *perp.Order) { o.CallbackGasLimit = chain.U64(7) }),
		of(2, func(o *perp.Order) { o.Status = perp.Frozen }),
		of(3, func(o *perp.Order) { o.Status = perp.Executed }), of(4, func(o *perp.Order) { o.AutoCancel = false }),
		of(5, func(o *perp.Order) { o.IsLong = false }),
		of(6, func(o *perp.Order) { o.Market = chain.Address{9} }),
		of(7, func(o *perp.Order) { o.InitialCollateralToken = chain.Address{9} }),
		of(8, func(o *perp.Order) { o.Account = chain.Address{9} }),
	))
	stranger := number(99)
	read, err := db.Look(t.Context(), pg.Keys{Positions: []chain.Hash{position.PositionKey, stranger}})
	must(t, err)
	found, orders := read.Positions[position.PositionKey], read.Ending[position.PositionKey]
	seen := map[chain.Hash]perp.Order{}
	for _, o := range orders {
		seen[o.Key] = o
	}
	if !found.Known || found.Row.Account != position.Account || len(orders) != 2 ||
		seen[number(1)].CallbackGasLimit != chain.U64(7) ||
		seen[number(2)].Status != perp.Frozen {
		t.Errorf("found %+v with %+v", found, orders)
	}
	if found, orders := read.Positions[stranger], read.Ending[stranger]; found.Known || len(orders) != 0 {
		t.Errorf("what is not there: %+v, %+v", found, orders)
	}
}

// Words are read by their keys, once each though every partition has a copy.
func TestParametersByKey(t *testing.T) {
	db := pgtest.DB(t)
	word := func(n uint64) perp.Parameter {
		return perp.Parameter{Key: number(n), Value: number(n + 100), Source: perp.FromEvent}
	}
	member := perp.MarketValue{Measure: perp.GlvMarket, Scope: chain.Hash{5}, Token: chain.Address{6},
		Value: chain.I64(1)}
	other := perp.MarketValue{Measure: perp.AdlEnabled, Scope: chain.Hash{5}, Value: chain.I64(1)}
	commit(t, claim(t, db, 0, 2), follow(chain.BlockRef{Number: 10}, word(1), word(2), word(3), member, other))
	commit(t, claim(t, db, 1, 2), follow(chain.BlockRef{Number: 10}, word(1), word(2), word(3)))
	known, err := db.Parameters(t.Context(), []chain.Hash{number(1), number(3), number(9)})
	must(t, err)
	if len(known) != 2 || known[0].Value == known[1].Value || known[0].Value != number(101) &&
		known[0].Value != number(103) {
		t.Errorf("found %+v", known)
	}
	markets, err := db.GlvMarkets(t.Context())
	must(t, err)
	if len(markets) != 1 || markets[0].Token != member.Token {
		t.Errorf("found %+v", markets)
	}
}
