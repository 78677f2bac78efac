package pg_test

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// Rows of all kinds are looked up together, as of one block, and for each key there is an answer.
func TestLookTogether(t *testing.T) {
	db := pgtest.DB(t)
	a, b := claim(t, db, 0, 2), claim(t, db, 1, 2)
	position := perp.Position{Account: chain.Address{1}, Market: chain.Address{2}, CollateralToken: chain.Address{3},
		Status: perp.Active}
	position.PositionKey = perp.PositionKey(position.Account, position.Market, position.CollateralToken, false)
	ending := order(4, perp.Created)
	ending.Account, ending.Market, ending.InitialCollateralToken, ending.AutoCancel = position.Account, position.Market,
		position.CollateralToken, true
	value := perp.MarketValue{Measure: perp.AdlEnabled, Scope: chain.Hash{5}, Value: chain.I64(1)}
	base := follow(chain.BlockRef{Number: 10}, order(1, perp.Created), order(2, perp.Created), position, value)
	other := follow(chain.BlockRef{Number: 10}, perp.Request{Key: number(3), Kind: perp.Shift}, ending)
	commit(t, a, base, follow(base.BlockRef))
	commit(t, b, other)
	k := pg.Keys{Orders: []chain.Hash{number(1), number(99), number(2)}, Requests: []chain.Hash{number(3)},
		Positions: []chain.Hash{position.PositionKey}, Values: []chain.Hash{value.RowKey().Key, number(98)}}
	for _, way := range []string{"one after the other", "at once"} {
		r, err := db.Look(t.Context(), k)
		must(t, err)
		if r.Progress.Generation != 1 || r.Progress.Partitions != 2 || len(r.Progress.Offsets) != 2 ||
			r.Progress.Watermark != base.BlockRef {
			t.Errorf("%s: progress: %+v", way, r.Progress)
		}
		nobody, asked := r.Orders[number(99)]
		if len(r.Orders) != 3 || !r.Orders[number(1)].Known || !r.Orders[number(2)].Known || !asked || nobody.Known ||
			nobody.At != base.BlockRef {
			t.Errorf("%s: orders: %+v", way, r.Orders)
		}
		if orders := r.Ending[position.PositionKey]; !r.Positions[position.PositionKey].Known || len(orders) != 1 ||
			orders[0].Key != ending.Key {
			t.Errorf("%s: position: %+v, which ends %+v", way, r.Positions, orders)
		}
		if !r.Requests[number(3)].Known || !r.Values[value.RowKey().Key].Known || r.Values[number(98)].Known {
			t.Errorf("%s: requests: %+v, values: %+v", way, r.Requests, r.Values)
		}
	}
}

// While a reorg is on its way through the partitions, two of them may hold one key: the row of the later block counts.
func TestLookTakesTheLaterRow(t *testing.T) {
	db := pgtest.DB(t)
	a, b := claim(t, db, 0, 2), claim(t, db, 1, 2)
	at := func(status perp.Status, block uint64) perp.Order {
		o := order(1, status)
		o.Stamp.Block = block
		return o
	}
	commit(t, a, follow(chain.BlockRef{Number: 10}, at(perp.Frozen, 12)))
	commit(t, b, follow(chain.BlockRef{Number: 10}, at(perp.Created, 11)))
	for range 2 {
		r, err := db.Look(t.Context(), pg.Keys{Orders: []chain.Hash{number(1)}})
		must(t, err)
		if r.Orders[number(1)].Row.Status != perp.Frozen {
			t.Errorf("found %+v", r.Orders)
		}
	}
}

// TIER-14: what a job is checked by takes one round trip to the database, however many rows it is, also while one
// partition is ahead of another; and none of it is of a generation that is no longer active, or is gone.
func TestLookIsOneRoundTrip(t *testing.T) {
	url := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, url)
	db, operator := open(t, proxy.URL()), open(t, url)
	a, b := claim(t, operator, 0, 2), claim(t, operator, 1, 2)
	base := follow(chain.BlockRef{Number: 10}, order(1, perp.Created))
	commit(t, a, base)
	commit(t, b, pg.AppliedBlock{BlockRef: base.BlockRef})
	k := pg.Keys{Orders: []chain.Hash{number(1), number(2)}, Positions: []chain.Hash{number(3)}}
	look := func(what string, trips, generation int, known bool) {
		t.Helper()
		before := proxy.Requests()
		r, err := db.Look(t.Context(), k)
		if took := proxy.Requests() - before; trips > 0 && took != trips {
			t.Errorf("%s: %d round trips, want %d", what, took, trips)
		}
		if err != nil || r.Progress.Generation != generation || r.Orders[number(1)].Known != known {
			t.Errorf("%s: generation %d, %+v, %v", what, r.Progress.Generation, r.Orders, err)
		}
	}
	const unchecked = 0 // until the connection knows the statements
	look("the first", unchecked, 1, true)
	look("the second", unchecked, 1, true)
	look("level", 1, 1, true)
	commit(t, a, follow(base.BlockRef))
	look("one partition ahead", 1, 1, true)

	must(t, operator.CreateGeneration(t.Context(), 2))
	must(t, operator.Switch(t.Context(), 2, "a test"))
	look("another generation", unchecked, 2, false)
	look("again", unchecked, 2, false)
	must(t, operator.Switch(t.Context(), 1, "a test"))
	look("and back", unchecked, 1, true)
	must(t, operator.Switch(t.Context(), 2, "a test"))
	must(t, operator.DropGeneration(t.Context(), 1))
	look("the one before is gone", unchecked, 2, false)
}
