package perp

import (
	"errors"
	"reflect"
	"testing"

	"github.com/holiman/uint256"

	"perpkeeper/pkg/chain"
)

// mustApply folds events into a fresh book, one block each.
func mustApply(t *testing.T, events ...Event) *Book {
	t.Helper()
	b := NewBook()
	for _, e := range events {
		if err := watchedApply(t, b, e); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func row[R Row](t *testing.T, s State, key RowKey) R {
	t.Helper()
	r, known := get[R](s, key)
	if !known {
		t.Fatalf("no row %v", key)
	}
	return r
}

var (
	trader  = chain.Address{0xaa}
	market  = chain.Address{0x33}
	usdc    = chain.Address{0xcc}
	longKey = PositionKey(trader, market, usdc, true)
)

func longPosition(size uint64, at uint64) Position {
	return Position{PositionKey: longKey, Account: trader, Market: market, CollateralToken: usdc, IsLong: true,
		SizeInUsd:    chain.U64(size),
		SizeInTokens: chain.U64(size), CollateralAmount: chain.U64(10), Stamp: Stamp{Block: at, TimeMs: at * 1000}}
}

func increased(size, delta uint64, impact int64, at uint64) PositionIncreased {
	p := longPosition(size, at)
	p.IncreasedAtTime = chain.U64(at)
	return PositionIncreased{Position: p, SizeDeltaUsd: chain.U64(delta), Impact: chain.I64(impact)}
}

func decreased(size, delta, at uint64) PositionDecreased {
	p := longPosition(size, at)
	p.DecreasedAtTime = chain.U64(at)
	return PositionDecreased{Position: p, SizeDeltaUsd: chain.U64(delta)}
}

func TestPendingImpact(t *testing.T) {
	for name, test := range map[string]struct {
		events []Event
		want   int64
	}{
		"increases add up":                   {[]Event{increased(10, 10, 7, 1), increased(25, 15, -9, 2)}, -2},
		"a positive share rounds down":       {[]Event{increased(3, 3, 10, 1), decreased(2, 1, 2)}, 10 - 3},
		"a negative share rounds up":         {[]Event{increased(3, 3, -10, 1), decreased(2, 1, 2)}, -(10 - 4)},
		"an exact negative share is exact":   {[]Event{increased(5, 5, -10, 1), decreased(4, 1, 2)}, -8},
		"taking collateral realizes nothing": {[]Event{increased(3, 3, -10, 1), decreased(3, 0, 2)}, -10},
		"a close resets":                     {[]Event{increased(3, 3, -10, 1), decreased(0, 3, 2)}, 0},
		"a close of dust resets":             {[]Event{increased(3, 3, -10, 1), decreased(0, 2, 2)}, 0},
		"a new life starts at nothing": {[]Event{increased(3, 3, -10, 1), decreased(0, 3, 2),
			increased(5, 5, 4, 3)}, 4},
		"a fold that starts later": {[]Event{decreased(2, 1, 2), increased(5, 3, 4, 3)}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := row[Position](t, mustApply(t, test.events...), RowKey{Positions, longKey})
			if p.PendingImpactAmount != chain.I64(test.want) {
				t.Errorf("pending impact %s, want %d", p.PendingImpactAmount, test.want)
			}
			if p.Changes != uint64(len(test.events)) {
				t.Errorf("%d changes, want %d", p.Changes, len(test.events))
			}
		})
	}
}

func TestPendingImpactIsWideEnough(t *testing.T) {
	// The product of size and impact exceeds 256 bits, as it may not overflow in the contract's mulDiv either.
	size, impact := chain.Pow10(70), chain.IntOf(true, chain.Pow10(60))
	up, down := longPosition(0, 1), longPosition(0, 2)
	up.SizeInUsd, down.SizeInUsd = size, size.Sub(size.Div(chain.U64(3)))
	b := mustApply(t, PositionIncreased{Position: up, SizeDeltaUsd: size, Impact: impact},
		PositionDecreased{Position: down, SizeDeltaUsd: size.Div(chain.U64(3))})
	want := chain.Pow10(60).Sub(chain.Pow10(60).MulDivUp(size.Div(chain.U64(3)), size))
	if p := row[Position](t, b, RowKey{Positions, longKey}); p.PendingImpactAmount != chain.IntOf(true, want) {
		t.Errorf("pending impact %s, want -%s", p.PendingImpactAmount, want)
	}
}

// TIER-6: an increase is Active, a decrease to zero is Closed.
func TestPositionLife(t *testing.T) {
	b := mustApply(t, increased(10, 10, 0, 100), decreased(4, 6, 110), increased(6, 2, 0, 120))
	p := row[Position](t, b, RowKey{Positions, longKey})
	if p.Status != Active || p.IncreasedAtTime != chain.U64(120) || p.DecreasedAtTime != chain.U64(110) {
		t.Errorf("open: %+v", p)
	}
	if err := Apply(b, decreased(0, 6, 130)); err != nil {
		t.Fatal(err)
	}
	p = row[Position](t, b, RowKey{Positions, longKey})
	if p.Status != Closed || p.IncreasedAtTime != chain.U64(120) || p.DecreasedAtTime != chain.U64(130) ||
		p.Stamp.Block != 130 {
		t.Errorf("closed: %+v", p)
	}
	if err := Apply(b, increased(9, 9, 0, 140)); err != nil {
		t.Fatal(err)
	}
	p = row[Position](t, b, RowKey{Positions, longKey})
	if p.Status != Active || p.IncreasedAtTime != chain.U64(140) || !p.DecreasedAtTime.IsZero() || p.Changes != 5 {
		t.Errorf("open again: %+v", p)
	}
}

func order(key byte) Order {
	return Order{Key: chain.Hash{key}, Account: trader, Market: market, OrderType: LimitIncrease,
		SizeDeltaUsd: chain.U64(5),
		ExecutionFee: chain.U64(3),
		DataList:     []chain.Hash{}, SwapPath: []chain.Address{}, Stamp: Stamp{Block: 1}}
}

func ended(key byte, s Status, block uint64) OrderEnded {
	return OrderEnded{Key: chain.Hash{key}, Status: s, Reason: "why", ReasonBytes: Bytes{1}, Stamp: Stamp{Block: block}}
}

// TIER-6: an order's status is the name of its last event. A frozen order lost its fee, an update revives it without
// one.
func TestOrderLife(t *testing.T) {
	update := OrderChanged{Key: chain.Hash{1}, SizeDeltaUsd: chain.U64(6), TriggerPrice: chain.U64(7), AutoCancel: true,
		DataList:      []chain.Hash{{9}},
		UpdatedAtTime: chain.U64(50), Stamp: Stamp{Block: 3}}
	size, collateral := chain.U64(4), chain.U64(2)
	b := NewBook()
	for _, step := range []struct {
		event   Event
		status  Status
		changes uint64
		fee     uint64
	}{
		{OrderCreated{order(1)}, Created, 1, 3},
		{ended(1, Frozen, 2), Frozen, 2, 0},
		{update, Updated, 3, 0},
		{OrderTimeInitialized{Key: chain.Hash{1}, UpdatedAtTime: chain.U64(51), Stamp: Stamp{Block: 4}}, Updated, 3, 0},
		{OrderResized{Key: chain.Hash{1}, NextSizeDeltaUsd: &size, Stamp: Stamp{Block: 5}}, Updated, 3, 0},
		{OrderResized{Key: chain.Hash{1}, NextCollateralDelta: &collateral, Stamp: Stamp{Block: 5, Log: 1}}, Updated, 3,
			0},
		{OrderEnded{Key: chain.Hash{1}, Status: Executed, SecondaryOrderType: chain.U64(1),
			Stamp: Stamp{Block: 5, Log: 2}},
			Executed, 3, 0},
	} {
		if err := Apply(b, step.event); err != nil {
			t.Fatal(err)
		}
		o := row[Order](t, b, RowKey{Orders, chain.Hash{1}})
		if o.Status != step.status || o.Changes != step.changes || o.ExecutionFee != chain.U64(step.fee) {
			t.Errorf("after %T: %+v", step.event, o)
		}
	}
	o := row[Order](t, b, RowKey{Orders, chain.Hash{1}})
	if o.Birth.Block != 3 || o.Stamp != (Stamp{Block: 5, Log: 2}) || o.SizeDeltaUsd != size ||
		o.InitialCollateralDeltaAmount != collateral ||
		!o.AutoCancel || o.DataList[0] != (chain.Hash{9}) || o.UpdatedAtTime != chain.U64(51) || o.Reason != "why" ||
		o.SecondaryOrderType != chain.U64(1) {
		t.Errorf("in the end: %+v", o)
	}
}

func TestRequestLife(t *testing.T) {
	created := RequestCreated{Request{Kind: Deposit, Key: chain.Hash{1}, Account: trader, Stamp: Stamp{Block: 1}}}
	cancelled := RequestEnded{Kind: Deposit, Key: chain.Hash{1}, Status: Cancelled, Reason: "why",
		ReasonBytes: Bytes{1}, Stamp: Stamp{Block: 2}}
	r := row[Request](t, mustApply(t, created, cancelled), RowKey{Requests, chain.Hash{1}})
	if r.Status != Cancelled || r.Reason != "why" || r.Birth.Block != 1 || r.Stamp.Block != 2 {
		t.Errorf("got %+v", r)
	}
}

// What cannot follow the rows that are there is a contradiction, and changes nothing.
func TestContradictions(t *testing.T) {
	deposit := RequestCreated{Request{Kind: Deposit, Key: chain.Hash{2}}}
	done := RequestEnded{Kind: Deposit, Key: chain.Hash{2}, Status: Executed}
	for name, test := range map[string]struct {
		before []Event
		event  Event
	}{
		"an order created twice": {[]Event{OrderCreated{order(1)}}, OrderCreated{order(1)}},
		"an order executed twice": {[]Event{OrderCreated{order(1)}, ended(1, Executed, 2)},
			ended(1, Executed, 3)},
		"an order cancelled after execution": {[]Event{OrderCreated{order(1)}, ended(1, Executed, 2)},
			ended(1, Cancelled, 3)},
		"an order updated after cancellation": {[]Event{OrderCreated{order(1)}, ended(1, Cancelled, 2)},
			OrderChanged{Key: chain.Hash{1}}},
		"a request created twice": {[]Event{deposit}, deposit},
		"a request ended twice":   {[]Event{deposit, done}, done},
		"a request ended as another kind": {[]Event{deposit},
			RequestEnded{Kind: Shift, Key: chain.Hash{2}, Status: Executed}},
		"a decrease of a closed position": {[]Event{increased(5, 5, 0, 1), decreased(0, 5, 2)},
			decreased(1, 1, 3)},
		"a decrease that does not add up":  {[]Event{increased(5, 5, 0, 1)}, decreased(3, 1, 3)},
		"a close of more than there is":    {[]Event{increased(5, 5, 0, 1)}, decreased(0, 6, 3)},
		"an increase that does not add up": {[]Event{increased(5, 5, 0, 1)}, increased(9, 3, 0, 3)},
		"a new life that starts above nothing": {[]Event{increased(5, 5, 0, 1), decreased(0, 5, 2)},
			increased(9, 4, 0, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustApply(t, test.before...)
			before := contents(b)
			if err := Apply(b, test.event); !errors.Is(err, ErrContradiction) {
				t.Errorf("got %v", err)
			}
			if !reflect.DeepEqual(before, contents(b)) {
				t.Error("the refused event changed something")
			}
		})
	}
}

func TestUnknownEndsAreRefused(t *testing.T) {
	b := mustApply(t, OrderCreated{order(1)}, RequestCreated{Request{Kind: Deposit, Key: chain.Hash{2}}})
	for _, e := range []Event{ended(1, Updated, 2), RequestEnded{Kind: Deposit, Key: chain.Hash{2}, Status: Frozen}} {
		if err := Apply(b, e); err == nil {
			t.Errorf("%+v was applied", e)
		}
	}
}

func TestOverflowIsAnError(t *testing.T) {
	e := increased(1, 0, 0, 2)
	e.Impact = chain.IntOf(false, maxInt)
	b := mustApply(t, increased(1, 1, 1, 1))
	if err := Apply(b, e); !errors.Is(err, chain.ErrArithmetic) {
		t.Errorf("got %v", err)
	}
}

// A fold that starts in the middle of history meets the ends of what it never saw begin.
func TestFoldThatStartsLater(t *testing.T) {
	size := chain.U64(1)
	b := mustApply(t, ended(1, Executed, 1), ended(2, Frozen, 1), OrderChanged{Key: chain.Hash{3}},
		OrderResized{Key: chain.Hash{4}, NextSizeDeltaUsd: &size},
		OrderTimeInitialized{Key: chain.Hash{5}}, RequestEnded{Kind: Shift, Key: chain.Hash{6}, Status: Cancelled},
		PositionTimeInitialized{Key: longKey, IncreasedAtTime: &size})
	if n := len(contents(b)); n != 0 {
		t.Errorf("%d rows were invented", n)
	}
	p := row[Position](t, mustApply(t, decreased(0, 5, 9)), RowKey{Positions, longKey})
	if p.Status != Closed || p.Changes != 1 {
		t.Errorf("a position first seen at its end: %+v", p)
	}
}

func TestMarketMeasures(t *testing.T) {
	value := func(scope chain.Hash, v int64) MarketValued {
		return MarketValued{Values: []MarketValue{{Measure: FundingFactorPerSecond, Scope: scope, Value: chain.I64(v)}}}
	}
	b := mustApply(t, value(market.Hash(), 1), value(market.Hash(), 2), value(chain.Hash{}, 3))
	if rows := b.Rows(MarketValues); len(rows) != 1 || rows[0].(MarketValue).Value != chain.I64(2) {
		t.Errorf("got %+v", rows)
	}
}

// The same event counts USD or tokens, as the flag stands at that moment.
func TestVirtualPositionsFollowTheFlag(t *testing.T) {
	id := chain.Hash{0x1d}
	flag := func(on bool, block uint64) ParameterSet {
		return ParameterSet{Parameter{Key: balanceInTokensKey, Value: BoolWord(on), Source: FromEvent,
			Stamp: Stamp{Block: block}}}
	}
	moved := func(v int64) VirtualPositionsMoved { return VirtualPositionsMoved{TokenID: id, Value: chain.I64(v)} }
	b := mustApply(t, moved(1), flag(true, 1), moved(2), moved(3), flag(false, 2), moved(4))
	usd := row[MarketValue](t, b, MarketValueKey(VirtualInventoryForPositions, id, chain.Address{}, false))
	tokens := row[MarketValue](t, b, MarketValueKey(VirtualInventoryForPositionsInTokens, id, chain.Address{}, false))
	if usd.Value != chain.I64(4) || tokens.Value != chain.I64(3) {
		t.Errorf("USD %s, tokens %s", usd.Value, tokens.Value)
	}
}

// Managers may set the flag without an event: what the event continues is what it counts, and neither measure takes an
// amount of the other. A fold that began later knows of one measure only, and goes by the flag.
func TestVirtualPositionsWithoutTheFlag(t *testing.T) {
	id := chain.Hash{0x1d}
	flag := func(on bool) ParameterSet {
		return ParameterSet{Parameter{Key: balanceInTokensKey, Value: BoolWord(on), Source: FromCall}}
	}
	moved := func(from, to int64) VirtualPositionsMoved {
		return VirtualPositionsMoved{TokenID: id, Value: chain.I64(to), Delta: chain.I64(to - from)}
	}
	for name, c := range map[string]struct {
		events      []Event
		usd, tokens int64
	}{
		"on, for the first time": {[]Event{moved(0, 500), moved(500, 700), moved(0, 3), moved(3, 4)}, 700, 4},
		"on and off":             {[]Event{moved(0, 500), moved(0, 3), moved(500, 600), moved(3, 5)}, 600, 5},
		"on, and seen later": {[]Event{moved(0, 500), moved(0, 3), flag(true), moved(3, 4), moved(4, 6)},
			500, 6},
		"off, for the first time":       {[]Event{flag(true), moved(0, 3), moved(0, 500), moved(500, 600)}, 600, 3},
		"before the first event":        {[]Event{moved(0, 3), flag(true), moved(3, 4), moved(4, 9)}, 3, 9},
		"a fold that began later":       {[]Event{flag(true), moved(7, 9), moved(9, 4)}, 0, 4},
		"one of which neither is known": {[]Event{moved(7, 9), flag(true), moved(80, 90)}, 9, 90},
	} {
		b := mustApply(t, c.events...)
		usd, _ := b.Get(MarketValueKey(VirtualInventoryForPositions, id, chain.Address{}, false)).(MarketValue)
		inTokens := MarketValueKey(VirtualInventoryForPositionsInTokens, id, chain.Address{}, false)
		tokens, _ := b.Get(inTokens).(MarketValue)
		if usd.Value != chain.I64(c.usd) || tokens.Value != chain.I64(c.tokens) {
			t.Errorf("%s: USD %s, tokens %s", name, usd.Value, tokens.Value)
		}
	}
}

func TestParameterSources(t *testing.T) {
	set := func(source ParameterSource, block uint64, v byte) ParameterSet {
		return ParameterSet{Parameter{Key: chain.Hash{1}, Value: chain.Hash{31: v}, Source: source,
			Stamp: Stamp{Block: block}}}
	}
	for name, test := range map[string]struct {
		events []Event
		want   byte
	}{
		"the later event":                             {[]Event{set(FromEvent, 1, 1), set(FromEvent, 2, 2)}, 2},
		"an event after a call":                       {[]Event{set(FromCall, 1, 1), set(FromEvent, 2, 2)}, 2},
		"a call of the same block":                    {[]Event{set(FromEvent, 2, 1), set(FromCall, 2, 2)}, 1},
		"a call of an earlier block":                  {[]Event{set(FromEvent, 2, 1), set(FromCall, 1, 2)}, 1},
		"a call of a later block sees a silent write": {[]Event{set(FromEvent, 2, 1), set(FromCall, 3, 2)}, 2},
		"the later call":                              {[]Event{set(FromCall, 3, 1), set(FromCall, 2, 2)}, 1},
	} {
		if p := row[Parameter](t, mustApply(t, test.events...),
			RowKey{Parameters, chain.Hash{1}}); p.Value[31] != test.want {
			t.Errorf("%s: got %d, want %d", name, p.Value[31], test.want)
		}
	}
}

// maxInt is the largest magnitude of an int256.
var maxInt = chain.UintOf(*new(uint256.Int).Rsh(new(uint256.Int).Not(new(uint256.Int)), 1))
