package perp

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

func contents(b *Book) map[RowKey]Row { return maps.Clone(b.rows) }

// drawEvent draws an event about one of a few rows, so that events meet each other's rows. Many do not fit and are
// refused.
func drawEvent(t *rapid.T, block uint64, log uint32) Event {
	key := chain.Hash{rapid.ByteRange(1, 4).Draw(t, "key")}
	number := func(label string) chain.Uint { return chain.U64(rapid.Uint64Range(0, 9).Draw(t, label)) }
	stamp := Stamp{Block: block, Log: log, TimeMs: block * 450}
	switch rapid.IntRange(0, 14).Draw(t, "event") {
	case 0, 1:
		p := drawPosition(t, stamp)
		return PositionIncreased{Position: p, SizeDeltaUsd: number("delta"),
			Impact: chain.I64(rapid.Int64Range(-9, 9).Draw(t, "impact"))}
	case 2, 3:
		return PositionDecreased{Position: drawPosition(t, stamp), SizeDeltaUsd: number("delta")}
	case 4, 5:
		return OrderCreated{Order{Key: key, ExecutionFee: number("fee"), Stamp: stamp}}
	case 6:
		return OrderChanged{Key: key, SizeDeltaUsd: number("size"), Stamp: stamp}
	case 7:
		size := number("size")
		return OrderResized{Key: key, NextSizeDeltaUsd: &size, Stamp: stamp}
	case 8:
		return OrderEnded{Key: key, Status: rapid.SampledFrom([]Status{Executed, Cancelled, Frozen}).Draw(t, "status"),
			Stamp: stamp}
	case 9:
		return RequestCreated{Request{Kind: Deposit, Key: key, Stamp: stamp}}
	case 10:
		return RequestEnded{Kind: Deposit, Key: key, Status: rapid.SampledFrom([]Status{Executed, Cancelled}).
			Draw(t, "status"), Stamp: stamp}
	case 11:
		funded := rapid.SampledFrom([]chain.Hash{chain.Address{key[0]}.Hash(), {}}).Draw(t, "funded")
		return MarketValued{Values: []MarketValue{
			{Measure: OpenInterest, Scope: key, Value: number("oi").Int(), Stamp: stamp},
			{Measure: PoolAmount, Scope: chain.Hash{}, Value: number("pool").Int(), Stamp: stamp},
			{Measure: FundingFactorPerSecond, Scope: funded, Value: number("rate").Int(), Stamp: stamp},
		}}
	case 12:
		source := rapid.SampledFrom([]ParameterSource{FromEvent, FromCall}).Draw(t, "source")
		if rapid.Bool().Draw(t, "flag") {
			key = balanceInTokensKey
		}
		return ParameterSet{Parameter{Key: key, Value: BoolWord(rapid.Bool().Draw(t, "value")), Source: source,
			Stamp: stamp}}
	}
	if rapid.Bool().Draw(t, "listing") {
		return MarketListed{Market{MarketToken: chain.Address{key[0]}, Stamp: stamp}}
	}
	return VirtualPositionsMoved{TokenID: key, Value: number("inventory").Int(), Stamp: stamp}
}

func drawPosition(t *rapid.T, stamp Stamp) Position {
	p := Position{Account: chain.Address{rapid.ByteRange(1, 2).Draw(t, "account")},
		SizeInUsd: chain.U64(rapid.Uint64Range(0, 9).Draw(t, "size")), Stamp: stamp}
	p.PositionKey = PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
	return p
}

// watched is a State that knows which rows an event said it would touch. Rows of resident tables may be read beside
// them.
type watched struct {
	*Book
	allowed map[RowKey]bool
	outside []RowKey
}

func (w *watched) Get(k RowKey) Row {
	if !k.Table.Resident() {
		w.note(k)
	}
	return w.Book.Get(k)
}

func (w *watched) Put(r Row) { w.note(r.RowKey()); w.Book.Put(r) }

func (w *watched) note(k RowKey) {
	if !w.allowed[k] {
		w.outside = append(w.outside, k)
	}
}

// applyWatched applies an event and checks what every event promises: it touches only what it names, and nothing when
// refused.
func applyWatched(t *rapid.T, b *Book, e Event) {
	before := contents(b)
	if err := watchedApply(t, b, e); err != nil && !reflect.DeepEqual(before, contents(b)) {
		t.Fatalf("%T was refused (%v) and changed the state", e, err)
	}
}

// watchedApply applies an event that touches only what it names.
func watchedApply(t interface{ Fatalf(string, ...any) }, b *Book, e Event) error {
	w := &watched{Book: b, allowed: map[RowKey]bool{}}
	for _, k := range e.Touches() {
		w.allowed[k] = true
	}
	err := Apply(w, e)
	if len(w.outside) > 0 {
		t.Fatalf("%T touched %v beside %v", e, w.outside, e.Touches())
	}
	return err
}

// Undoing to any block leaves exactly the fold of what came before, and folding on from there is folding the other
// branch.
func TestUndoIsTheFoldOfThePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := NewBook()
		states := map[uint64]map[RowKey]Row{0: {}}
		var blocks []uint64
		for number, n := uint64(0), rapid.IntRange(1, 8).Draw(t, "blocks"); n > 0; n-- {
			number += rapid.Uint64Range(1, 3).Draw(t, "gap")
			if err := book.Begin(number); err != nil {
				t.Fatal(err)
			}
			for log := range uint32(rapid.IntRange(0, 8).Draw(t, "events")) {
				applyWatched(t, book, drawEvent(t, number, log))
			}
			blocks, states[number] = append(blocks, number), contents(book)
		}
		to := rapid.SampledFrom(append(blocks, 0)).Draw(t, "undo to")
		if err := book.Undo(to); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(contents(book), states[to]) {
			t.Fatalf("after undo to %d: %v, want %v", to, contents(book), states[to])
		}
		if err := book.Begin(to + 1); err != nil {
			t.Fatalf("the other branch cannot begin: %v", err)
		}
	})
}

// PIPE-8: the same events leave the same rows.
func TestApplyIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := NewBook(), NewBook()
		for log := range uint32(rapid.IntRange(0, 30).Draw(t, "events")) {
			e := drawEvent(t, 1, log)
			if a, b := Apply(first, e), Apply(second, e); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%T: %v and %v", e, a, b)
			}
		}
		if !reflect.DeepEqual(contents(first), contents(second)) {
			t.Fatal("two folds of the same events differ")
		}
	})
}

func TestBookRefusesToGoBack(t *testing.T) {
	b := NewBook()
	for _, n := range []uint64{5, 6, 9} {
		if err := b.Begin(n); err != nil {
			t.Fatal(err)
		}
		b.Put(Market{MarketToken: chain.Address{byte(n)}})
	}
	if b.Begin(9) == nil || b.Begin(8) == nil {
		t.Error("a block began twice or out of order")
	}
	b.Finalize(6)
	if b.Undo(5) == nil {
		t.Error("a final block was undone")
	}
	if err := b.Undo(6); err != nil || len(b.Rows(Markets)) != 2 {
		t.Errorf("undo to the final block: %v, %d markets", err, len(b.Rows(Markets)))
	}
	if b.Begin(6) == nil {
		t.Error("a final block began again")
	}
}
