package liquidation

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// unread are the fields that the index does not keep.
var unread = []string{"LongTokenClaimableFundingAmountPerSize", "ShortTokenClaimableFundingPerSize"}

func drawNumber(t *rapid.T, name string) chain.Uint {
	return chain.UintFromBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, name))
}

// Every field of a position, at any value it can have, is the same after packing, but for those that no rule reads.
func TestPackedPositionsAreWhatTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := perp.Position{Status: perp.Active, IsLong: rapid.Bool().Draw(t, "long")}
		v := reflect.ValueOf(&p).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i).Addr().Interface().(type) {
			case *chain.Uint:
				*f = drawNumber(t, v.Type().Field(i).Name)
			case *chain.Hash:
				*f = chain.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
			case *chain.Address:
				*f = chain.Address(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
			}
		}
		half := drawNumber(t, "impact").Div(chain.U64(2)).Int()
		p.PendingImpactAmount = half
		if rapid.Bool().Draw(t, "negative") {
			p.PendingImpactAmount = half.Neg()
		}
		p.Changes = rapid.Uint64().Draw(t, "changes")
		p.Stamp = perp.Stamp{Block: rapid.Uint64().Draw(t, "block"), Log: rapid.Uint32().Draw(t, "log"),
			TimeMs: rapid.Uint64().Draw(t, "time")}
		x := NewIndex(perp.One)
		x.Put(p)
		for _, name := range unread {
			v.FieldByName(name).SetZero()
		}
		got, known := x.Get(p.PositionKey)
		if !known {
			t.Fatalf("%+v is not there", p)
		}
		judged := entry{p.SizeInUsd.Float(), p.SizeInTokens.Float(), p.CollateralAmount.Float(),
			p.BorrowingFactor.Float(), p.FundingFeeAmountPerSize.Float()}
		if e := entryOf(pack(nil, &p, 1)); e != judged {
			t.Errorf("judging prices are computed from %+v, not %+v: pack a new number behind these five", e, judged)
		}
		for i := range v.NumField() {
			if was, is := v.Field(i).Interface(), reflect.ValueOf(got).Field(i).Interface(); is != was {
				t.Errorf("%s: %v has become %v; pack and unpack it in packed.go, or list it in unread "+
					"beside this test if no rule reads it", v.Type().Field(i).Name, was, is)
			}
		}
	})
}

// Whatever is put, replaced and removed, the index has what a map has, and a round of slices yields each once.
func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, twin := NewIndex(perp.One), map[chain.Hash]perp.Position{}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			key := chain.Hash{byte(rapid.IntRange(0, 40).Draw(t, "key"))}
			if rapid.IntRange(0, 2).Draw(t, "removed") == 0 {
				x.Remove(key)
				delete(twin, key)
				continue
			}
			p := perp.Position{PositionKey: key, Status: perp.Active, SizeInUsd: drawNumber(t, "size"),
				Market: chain.Address{byte(rapid.IntRange(0, 2).Draw(t, "market"))},
				IsLong: rapid.Bool().Draw(t, "long")}
			x.Put(p)
			twin[key] = p
		}
		seen := map[chain.Hash]perp.Position{}
		r := NewRound([]*Index{NewIndex(perp.One), x}, []chain.Hash{{1}, {2}, {1}})
		for left := true; left; {
			left = r.gather(3)
			for _, p := range r.slice {
				if _, again := seen[p.PositionKey]; again {
					t.Fatalf("position %x comes twice", p.PositionKey[:1])
				}
				seen[p.PositionKey] = p
			}
		}
		byMarket := map[chain.Hash]perp.Position{}
		for _, m := range x.Markets() {
			for p := range x.Each(m) {
				byMarket[p.PositionKey] = *p
			}
		}
		if x.Len() != len(twin) || !maps.Equal(seen, twin) || !maps.Equal(byMarket, twin) {
			t.Fatalf("%d positions, %d in a round, %d by market, want %d", x.Len(), len(seen), len(byMarket), len(twin))
		}
	})
}

// A judging price is never above the price it is rounded from, as prices are asked for.
func TestJudgingPricesAreRoundedUpward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Float64().Draw(t, "price")
		if got := float64(upward(price)); got < price || price > -math.MaxFloat64 && math.IsInf(got, -1) {
			t.Fatalf("%g becomes %g", price, got)
		}
	})
	if got := upward(math.Inf(-1)); !math.IsInf(float64(got), -1) {
		t.Errorf("never becomes %g", got)
	}
}

// Members of one price, as those that are always due, are told apart.
func TestEntriesOfOnePrice(t *testing.T) {
	var r priceEntries
	for i := range handle(5) {
		r = r.with(priceEntry{1, i})
	}
	r = r.with(priceEntry{2, 9})
	r = r.without(r.search(1), 3)
	if r.has(priceEntry{1, 3}) || !r.has(priceEntry{1, 4}) || len(r.due(1.5)) != 1 ||
		!slices.IsSortedFunc(r, func(a, b priceEntry) int {
			return int(a.price - b.price)
		}) {
		t.Errorf("%v", r)
	}
}
