package preflight

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txmanager"
)

// written is a state of single rows.
type written struct {
	positions map[chain.Hash]perp.Position
	orders    map[chain.Hash]perp.Order
	requests  map[chain.Hash]perp.Request
	values    map[chain.Hash]perp.MarketValue
	disabled  map[chain.Address]bool // markets
	closing   []perp.Order
	final     uint64 // number of the newest final block
	back      bool   // the newest final block has been taken back
	err       error
}

func find[R perp.Row](rows map[chain.Hash]R, keys []chain.Hash) map[chain.Hash]pg.Found[R] {
	found := map[chain.Hash]pg.Found[R]{}
	for _, key := range keys {
		row, known := rows[key]
		found[key] = pg.Found[R]{Row: row, Known: known}
	}
	return found
}

func (w written) Look(ctx context.Context, k pg.Keys) (r pg.Rows, err error) {
	r = pg.Rows{Positions: find(w.positions, k.Positions), Orders: find(w.orders, k.Orders),
		Requests: find(w.requests, k.Requests), Values: find(w.values, k.Values), Ending: map[chain.Hash][]perp.Order{}}
	parameters := map[chain.Hash]perp.Parameter{}
	for market := range w.disabled {
		parameters[perp.DisabledKey(market)] = perp.Parameter{Value: perp.BoolWord(true)}
	}
	r.Parameters = find(parameters, k.Parameters)
	for _, key := range k.Positions {
		r.Ending[key] = w.closing
	}
	r.Progress, err = w.Progress(ctx)
	return r, err
}

func (w written) Progress(context.Context) (pg.Progress, error) {
	at := chain.BlockRef{Number: w.final, Hash: chain.Hash{1}}
	final := at
	if w.back {
		at.Number--
	}
	return pg.Progress{Watermark: at, Offsets: []pg.Offset{{Tip: at, Finalized: final}}}, w.err
}

func noGlv(chain.Address) int { return 0 }

// What an execution has to do is read from the rows that say that it is pending.
func TestPendingKnowsTheWork(t *testing.T) {
	key, glv := chain.Hash{5}, chain.Address{9}
	closing := []perp.Order{{Key: key, CallbackGasLimit: chain.U64(1)},
		{Key: chain.Hash{6}, CallbackGasLimit: chain.U64(7)}}
	order := func(o perp.Order) written {
		o.Key, o.Status, o.Changes = key, perp.Created, 1
		return written{orders: map[chain.Hash]perp.Order{key: o}, closing: closing}
	}
	enabled := perp.MarketValue{Measure: perp.AdlEnabled, Value: chain.I64(1)}
	position := written{
		positions: map[chain.Hash]perp.Position{key: {PositionKey: key, Status: perp.Active, Changes: 1}},
		closing:   closing,
		values:    map[chain.Hash]perp.MarketValue{enabled.RowKey().Key: enabled},
	}
	request := func(kind perp.RequestKind, fields perp.Fields) written {
		return written{requests: map[chain.Hash]perp.Request{key: {Key: key, Kind: kind, Status: perp.Created,
			Fields: fields}}}
	}
	path := []chain.Address{{1}, {2}}
	for name, c := range map[string]struct {
		state written
		j     job.Job
		want  gmx.Work
	}{
		"increase": {order(perp.Order{OrderType: perp.LimitIncrease, SwapPath: path,
			DecreasePositionSwapType: chain.U64(1), CallbackGasLimit: chain.U64(3)}),
			job.Job{ID: job.OrderID(key, 1), Kind: job.Order},
			gmx.Work{Kind: job.Order, OrderType: perp.LimitIncrease, Swaps: 2, Callback: 3}},
		"decrease": {order(perp.Order{OrderType: perp.StopLossDecrease, SwapPath: path,
			DecreasePositionSwapType: chain.U64(1)}),
			job.Job{ID: job.OrderID(key, 1), Kind: job.Order},
			gmx.Work{Kind: job.Order, OrderType: perp.StopLossDecrease, Swaps: 3, AutoCancel: []uint64{7}}},
		"liquidation": {position, job.Job{ID: job.LiquidationID(key, 1), Kind: job.Liquidation},
			gmx.Work{Kind: job.Liquidation, SavedCallback: true, AutoCancel: []uint64{1, 7}}},
		"deleveraging": {position, job.Job{ID: job.AdlID(key, 1), Kind: job.Adl},
			gmx.Work{Kind: job.Adl, SavedCallback: true, AutoCancel: []uint64{1, 7}}},
		"deposit": {request(perp.Deposit,
			perp.Fields{"callbackGasLimit": chain.U64(4), "initialLongTokenAmount": chain.U64(0),
				"shortTokenSwapPath": path}),
			job.Job{Kind: job.Deposit}, gmx.Work{Kind: job.Deposit, Callback: 4, Swaps: 2, OneToken: true}},
		"withdrawal": {request(perp.Withdrawal, perp.Fields{"longTokenSwapPath": path, "shortTokenSwapPath": path}),
			job.Job{Kind: job.Withdrawal}, gmx.Work{Kind: job.Withdrawal, Swaps: 4}},
		"GLV deposit": {request(perp.GlvDeposit, perp.Fields{"glv": glv, "isMarketTokenDeposit": true}),
			job.Job{Kind: job.GlvDeposit}, gmx.Work{Kind: job.GlvDeposit, Markets: 3, MarketTokens: true}},
		"GLV shift": {request(perp.GlvShift, perp.Fields{"glv": glv}), job.Job{Kind: job.GlvShift},
			gmx.Work{Kind: job.GlvShift, Markets: 3}},
	} {
		c.j.Key = key
		markets := func(of chain.Address) int {
			if of != glv {
				return 0
			}
			return 3
		}
		got, v, err := pending{c.state, false, markets}.ask(t.Context(), c.j)
		if err != nil || v.Kind != txmanager.Proceed || !reflect.DeepEqual(got.work, c.want) {
			t.Errorf("%s: %+v, %+v, %v; want %+v", name, got.work, v, err, c.want)
		}
	}
}

// TIER-4, TIER-5.
func TestPending(t *testing.T) {
	key := chain.Hash{5}
	position := func(status perp.PositionStatus) written {
		return written{positions: map[chain.Hash]perp.Position{key: {
			PositionKey: key, Status: status, Changes: 2,
			IncreasedAtTime: chain.U64(50), DecreasedAtTime: chain.U64(70),
		}}}
	}
	order := func(kind perp.OrderType, status perp.Status) written {
		o := perp.Order{Key: key, OrderType: kind, Status: status, Changes: 2, UpdatedAtTime: chain.U64(60)}
		return written{
			orders:    map[chain.Hash]perp.Order{key: o},
			positions: map[chain.Hash]perp.Position{o.PositionKey(): {IncreasedAtTime: chain.U64(65)}},
		}
	}
	request := func(status perp.Status) written {
		return written{requests: map[chain.Hash]perp.Request{key: {Key: key, Status: status,
			UpdatedAtTime: chain.U64(60)}}}
	}
	liquidation := job.Job{ID: job.LiquidationID(key, 2), Kind: job.Liquidation, Key: key}
	execution := job.Job{ID: job.OrderID(key, 2), Kind: job.Order, Key: key, ExpiresMs: 360_000}
	deposit := job.Job{ID: job.RequestID(job.Deposit, key), Kind: job.Deposit, Key: key, ExpiresMs: 360_000}
	venue := chain.Address{6}
	said := func(block uint64) written {
		row := perp.MarketValue{Measure: perp.AdlEnabled, Scope: venue.Hash(), IsLong: true,
			Stamp: perp.Stamp{Block: block, TimeMs: 70_000}}
		return written{values: map[chain.Hash]perp.MarketValue{row.RowKey().Key: row}}
	}
	update := job.Job{ID: job.AdlStateID(venue, true, 4), Kind: job.AdlState, Key: venue.Hash(), Market: venue,
		IsLong: true}
	deleveraging := job.Job{ID: job.AdlID(key, 2), Kind: job.Adl, Key: key, Market: venue, IsLong: true}
	exceeded := func(enabled int64) written {
		w := position(perp.Active)
		row := perp.MarketValue{
			Measure: perp.AdlEnabled, Scope: venue.Hash(), IsLong: true, Value: chain.I64(enabled),
			Stamp: perp.Stamp{Block: 4, TimeMs: 90_000},
		}
		w.values = map[chain.Hash]perp.MarketValue{row.RowKey().Key: row}
		return w
	}
	skip := func(why string) txmanager.Verdict { return txmanager.End(job.SkippedDone, why) }
	stale := func(id string, j job.Job) job.Job {
		j.ID = id
		return j
	}
	for name, c := range map[string]struct {
		state  written
		frozen bool
		j      job.Job
		want   terms
		v      txmanager.Verdict
	}{
		"open position": {position(perp.Active), false, liquidation, terms{window: perp.Window{From: 70}},
			txmanager.Verdict{}},
		"closed position": {position(perp.Closed), false, liquidation, terms{}, skip("the position is Closed")},
		"no position":     {written{}, false, liquidation, terms{}, skip("there is no such position")},
		"position changed": {position(perp.Active), false, stale(job.LiquidationID(key, 1), liquidation), terms{},
			skip("the position has changed: another job stands for it")},
		"deleveraging": {exceeded(1), false, deleveraging, terms{window: perp.Window{From: 90}},
			txmanager.Verdict{}},
		"deleveraging, over": {exceeded(0), false, deleveraging, terms{},
			skip("the exchange says that the side is not to be deleveraged")},
		"deleveraging, never said": {position(perp.Active), false, deleveraging, terms{},
			skip("the exchange says that the side is not to be deleveraged")},
		"deleveraged": {exceeded(1), false, stale(job.AdlID(key, 1), deleveraging), terms{},
			skip("the position has changed: another job stands for it")},
		"deleveraging state":      {said(4), false, update, terms{window: perp.Window{From: 70}}, txmanager.Verdict{}},
		"deleveraging state said": {said(5), false, update, terms{}, skip("the exchange said so in block 5")},
		"deleveraging state never said": {written{}, false, stale(job.AdlStateID(venue, true, 0), update), terms{},
			txmanager.Verdict{}},
		"market order": {order(perp.MarketIncrease, perp.Created), false, execution,
			terms{window: perp.Window{From: 60, To: 360}, first: true}, txmanager.Verdict{}},
		"updated limit order": {order(perp.LimitIncrease, perp.Updated), false, execution,
			terms{window: perp.Window{From: 60}}, txmanager.Verdict{}},
		"stop loss": {order(perp.StopLossDecrease, perp.Created), false, execution,
			terms{window: perp.Window{From: 65}}, txmanager.Verdict{}},
		"executed order": {order(perp.MarketIncrease, perp.Executed), false, execution, terms{},
			skip("the order is Executed")},
		"cancelled order": {order(perp.MarketIncrease, perp.Cancelled), false, execution, terms{},
			skip("the order is Cancelled")},
		"frozen order": {order(perp.LimitIncrease, perp.Frozen), false, execution, terms{},
			skip("the order is Frozen")},
		"frozen, with role": {order(perp.LimitIncrease, perp.Frozen), true, execution,
			terms{window: perp.Window{From: 60}}, txmanager.Verdict{}},
		"no order": {written{}, false, execution, terms{}, skip("there is no such order")},
		"order changed": {order(perp.LimitIncrease, perp.Created), false, stale(job.OrderID(key, 3), execution),
			terms{},
			skip("the order has changed: another job stands for it")},
		"request": {request(perp.Created), false, deposit,
			terms{window: perp.Window{From: 60, To: 360}, first: true}, txmanager.Verdict{}},
		"executed request": {request(perp.Executed), false, deposit, terms{}, skip("the request is Executed")},
		"no request":       {written{}, false, deposit, terms{}, skip("there is no such request")},
	} {
		got, v, err := pending{c.state, c.frozen, noGlv}.ask(t.Context(), c.j)
		if err != nil || got.window != c.want.window || got.first != c.want.first || v != c.v {
			t.Errorf("%s: %+v, %+v, %v; want %+v, %+v", name, got, v, err, c.want, c.v)
		}
	}
	for _, j := range []job.Job{liquidation, execution, deposit, update, deleveraging} {
		if _, v, err := (pending{written{err: errors.New("connection refused")}, false, noGlv}).
			ask(t.Context(), j); err == nil || v.Kind != txmanager.Proceed {
			t.Errorf("%s: an error is not an answer: %+v, %v", j.Kind, v, err)
		}
	}
}

// TIER-4: what a job was found by may leave the state with the block it was found in, and come back on the new branch.
// Until that block is final the job waits; what is not there then is not there.
func TestPendingOutlastsAReorg(t *testing.T) {
	key, venue := chain.Hash{5}, chain.Address{6}
	const found = 100
	at := func(id string, kind job.Kind) job.Job {
		return job.Job{ID: id, Kind: kind, Key: key, Market: venue, IsLong: true,
			Evidence: job.Evidence{Block: chain.BlockRef{Number: found}}}
	}
	// rows is a state in which all that there is was last changed in a block, for the first time.
	rows := func(last uint64) written {
		stamp := perp.Stamp{Block: last}
		said := perp.MarketValue{Measure: perp.AdlEnabled, Scope: venue.Hash(), IsLong: true, Stamp: stamp}
		return written{
			positions: map[chain.Hash]perp.Position{key: {PositionKey: key, Status: perp.Active, Changes: 1,
				Stamp: stamp}},
			orders: map[chain.Hash]perp.Order{key: {Key: key, Status: perp.Created, Changes: 1, Stamp: stamp}},
			values: map[chain.Hash]perp.MarketValue{said.RowKey().Key: said},
		}
	}
	silent := rows(found)
	silent.values = nil
	for name, c := range map[string]struct {
		state  written
		j      job.Job
		at     uint64 // the block from which on the answer counts
		reason string
	}{
		"no order":        {written{}, at(job.OrderID(key, 1), job.Order), found, "no such order"},
		"no position":     {written{}, at(job.LiquidationID(key, 1), job.Liquidation), found, "no such position"},
		"no deleveraging": {written{}, at(job.AdlID(key, 1), job.Adl), found, "no such position"},
		"no request":      {written{}, at(job.RequestID(job.Shift, key), job.Shift), found, "no such request"},
		"an order as it was before": {rows(found - 1), at(job.OrderID(key, 2), job.Order), found,
			"the order has changed"},
		"a position as it was before": {rows(found), at(job.LiquidationID(key, 2), job.Liquidation), found,
			"the position has changed"},
		"a saying of before": {rows(found - 7), at(job.AdlStateID(venue, true, found), job.AdlState), found,
			"the exchange said so in block 93"},
		"an order that was changed since": {rows(found + 1), at(job.OrderID(key, 2), job.Order), 0,
			"the order has changed"},
		"a position that was changed since": {rows(found + 1), at(job.LiquidationID(key, 2), job.Liquidation), 0,
			"the position has changed"},
		"a side of which nothing is said": {silent, at(job.AdlID(key, 1), job.Adl), found, "not to be deleveraged"},
		"a side as it was said before": {rows(found - 1), at(job.AdlID(key, 1), job.Adl), found,
			"not to be deleveraged"},
		"a side of which the other is said since": {rows(found + 1), at(job.AdlID(key, 1), job.Adl), 0,
			"not to be deleveraged"},
		"a later saying": {rows(found + 1), at(job.AdlStateID(venue, true, found), job.AdlState), 0,
			"the exchange said so in block 101"},
	} {
		for _, final := range []uint64{0, found - 1, found, found + 1} {
			c.state.final = final
			want := txmanager.Drop
			if final < c.at {
				want = txmanager.Retry
			}
			_, v, err := pending{c.state, false, noGlv}.ask(t.Context(), c.j)
			if err != nil || v.Kind != want || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("%s, block %d is final: %+v, %v", name, final, v, err)
			}
			if want == txmanager.Retry && v.Heads != 1 || want == txmanager.Drop && v.Outcome != job.SkippedDone {
				t.Errorf("%s, block %d is final: %+v", name, final, v)
			}
		}
	}
}

// A topic that lost its end takes final blocks back for a moment: what is missing then ends nothing, and is missing for
// good where it has not come back with them.
func TestPendingOutlastsALostTail(t *testing.T) {
	key := chain.Hash{5}
	for _, j := range []job.Job{
		{ID: job.OrderID(key, 1), Kind: job.Order, Key: key},
		{ID: job.LiquidationID(key, 1), Kind: job.Liquidation, Key: key},
		{ID: job.RequestID(job.Shift, key), Kind: job.Shift, Key: key},
	} {
		j.Evidence.Block.Number = 100
		for back, want := range map[bool]txmanager.Decision{true: txmanager.Retry, false: txmanager.Drop} {
			_, v, err := pending{written{final: 120, back: back}, false, noGlv}.ask(t.Context(), j)
			if err != nil || v.Kind != want ||
				back && (v.Heads != 1 || !strings.Contains(v.Reason, "below what is final")) {
				t.Errorf("a %s, while the final block is taken back %t: %+v, %v", j.Kind, back, v, err)
			}
		}
	}
}

// A cancel is pending while what expired stands as it was, also in a disabled market; an order that waits for a price
// is never cancelled, whatever a job says.
func TestCancelsArePending(t *testing.T) {
	key, own := chain.Hash{5}, chain.Address{6}
	state := func(kind perp.OrderType, status perp.Status) written {
		return written{
			orders: map[chain.Hash]perp.Order{key: {Key: key, Market: own, OrderType: kind, Status: status, Changes: 2,
				CallbackGasLimit: chain.U64(7)}},
			requests: map[chain.Hash]perp.Request{key: {Key: key, Kind: perp.Deposit, Market: own, Status: status}},
			disabled: map[chain.Address]bool{own: true},
		}
	}
	order := func(changes uint64) job.Job {
		return job.Job{ID: job.CancelID(job.Job{ID: job.OrderID(key, changes), Kind: job.Order}), Kind: "cancelOrder",
			Key: key, Market: own}
	}
	deposit := job.Job{ID: job.CancelID(job.Job{ID: job.RequestID(job.Deposit, key), Kind: job.Deposit}),
		Kind: "cancelDeposit", Key: key, Market: own}
	for name, c := range map[string]struct {
		state written
		j     job.Job
		want  job.Outcome
	}{
		"an expired order":                {state(perp.MarketDecrease, perp.Created), order(2), ""},
		"an expired deposit":              {state(0, perp.Created), deposit, ""},
		"an order that has changed since": {state(perp.MarketDecrease, perp.Created), order(1), job.SkippedDone},
		"a cancelled order":               {state(perp.MarketDecrease, perp.Cancelled), order(2), job.SkippedDone},
		"a cancelled deposit":             {state(0, perp.Cancelled), deposit, job.SkippedDone},
		"no order":                        {written{}, order(2), job.SkippedDone},
		"no deposit":                      {written{}, deposit, job.SkippedDone},
		"a limit order":                   {state(perp.LimitIncrease, perp.Created), order(2), job.Refused},
		"a stop loss":                     {state(perp.StopLossDecrease, perp.Created), order(2), job.Refused},
	} {
		got, v, err := pending{c.state, false, noGlv}.ask(t.Context(), c.j)
		if err != nil || v.Outcome != c.want || c.want == "" && (v.Kind != txmanager.Proceed ||
			got.work.Kind != c.j.Kind || got.window != perp.Window{} || got.first ||
			c.j.Kind == "cancelOrder" && got.work.Callback != 7) {
			t.Errorf("%s: %+v, %+v, %v", name, got, v, err)
		}
	}
}

// What the venue would cancel or freeze because a market that it touches is disabled waits for however long that lasts,
// and goes on when the market is open again; a liquidation is asked of the venue itself.
func TestWaitsForDisabledMarkets(t *testing.T) {
	key, own, other := chain.Hash{5}, chain.Address{6}, chain.Address{7}
	path := []chain.Address{other}
	state := written{
		orders: map[chain.Hash]perp.Order{key: {Key: key, Market: own, SwapPath: path, OrderType: perp.MarketDecrease,
			Status: perp.Created, Changes: 1}},
		requests: map[chain.Hash]perp.Request{key: {Key: key, Kind: perp.Deposit, Market: own, Status: perp.Created,
			Fields: perp.Fields{"longTokenSwapPath": path}}},
		positions: map[chain.Hash]perp.Position{key: {PositionKey: key, Market: own, Status: perp.Active, Changes: 1}},
	}
	for _, c := range []struct {
		j     job.Job
		waits bool
	}{
		{job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Market: own}, true},
		{job.Job{ID: job.RequestID(job.Deposit, key), Kind: job.Deposit, Key: key, Market: own}, true},
		{job.Job{ID: job.LiquidationID(key, 1), Kind: job.Liquidation, Key: key, Market: own}, false},
	} {
		for name, disabled := range map[string]map[chain.Address]bool{"none": nil, "another": {{8}: true},
			"its own": {own: true}, "one of its path": {other: true}} {
			state.disabled = disabled
			want := txmanager.Proceed
			if c.waits && (disabled[own] || disabled[other]) {
				want = txmanager.Defer
			}
			_, v, err := pending{state, false, noGlv}.ask(t.Context(), c.j)
			if err != nil || v.Kind != want || want == txmanager.Defer && (v.Heads != 1 || !v.Shown ||
				!strings.Contains(v.Reason, "is disabled")) {
				t.Errorf("%s, disabled is %s: %+v, %v", c.j.Kind, name, v, err)
			}
		}
	}
}
