package fakechain_test

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

func (w *world) progress(d *fakechain.Derived) pg.Progress {
	w.t.Helper()
	s, err := d.Progress(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// A state stands where its ails and its endpoint's faults let it, and says so.
func TestStateLags(t *testing.T) {
	w := newWorld(t)
	w.blocks(20)
	e := w.Chain.Endpoint()
	d := e.Derived()
	at := func(want uint64) {
		t.Helper()
		s := w.progress(d)
		if s.Watermark.Number != want || !s.Level() || s.Watermark.Hash.IsZero() || s.Generation != 1 {
			t.Errorf("the state stands at %+v, want block %d", s, want)
		}
	}
	head := w.head().Number
	at(head)
	d.SetLag(2 * blockTime)
	at(head - 2)
	e.SetFaults(fakechain.Faults{Lag: 3 * blockTime})
	at(head - 5)
	d.SetLag(0)
	e.SetFaults(fakechain.Faults{Down: true})
	w.blocks(7)
	at(head)
	e.SetFaults(fakechain.Faults{})
	at(head + 7)
}

// A row that is not there is an answer (TIER-5).
func TestRowsThatAreNotThere(t *testing.T) {
	d := newWorld(t).Derived()
	p, err1 := d.Position(t.Context(), chain.Hash{1})
	o, err2 := d.Order(t.Context(), chain.Hash{1})
	r, err3 := d.Request(t.Context(), chain.Hash{1})
	v, err4 := d.MarketValue(t.Context(), chain.Hash{1})
	if p.Known || o.Known || r.Known || v.Known || err1 != nil || err2 != nil || err3 != nil || err4 != nil ||
		p.At.Hash.IsZero() {
		t.Errorf("%+v %+v %+v %+v", p, o, r, v)
	}
}

// held is what a planner holds of a state.
type held struct {
	rows map[perp.RowKey]perp.Row
	seen pg.Seen
}

// take brings it to the newest changes.
func (h *held) take(t interface{ Fatal(...any) }, d *fakechain.Derived,
	ask func() (pg.Changes, error)) (reloaded bool) {
	c, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	if c.Reload {
		h.rows = map[perp.RowKey]perp.Row{}
		loaded, err := d.Load(context.Background(), []int{0}, func(_ int, row perp.Row) error {
			h.rows[row.RowKey()] = row
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		h.seen = loaded.Seen
		return true
	}
	h.seen = c.Seen
	merge(h, perp.Positions, c.Positions)
	merge(h, perp.Orders, c.Orders)
	merge(h, perp.Requests, c.Requests)
	merge(h, perp.Markets, c.Markets)
	merge(h, perp.MarketValues, c.Values)
	merge(h, perp.Parameters, c.Parameters)
	return c.Reload
}

func merge[R perp.Row](h *held, table perp.Table, d pg.Delta[R]) {
	for _, row := range d.Changed {
		h.rows[row.RowKey()] = row
	}
	for _, key := range d.Removed {
		delete(h.rows, perp.RowKey{Table: table, Key: key})
	}
}

// mustHold demands that what was gathered from changes is what a first look shows.
func mustHold(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, h *held, first *held) {
	if reflect.DeepEqual(h.rows, first.rows) {
		return
	}
	keys := slices.Collect(maps.Keys(first.rows))
	slices.SortFunc(keys, func(a, b perp.RowKey) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	for _, key := range keys {
		if !reflect.DeepEqual(h.rows[key], first.rows[key]) {
			t.Fatalf("row %v is %+v, want %+v", key, h.rows[key], first.rows[key])
		}
	}
	t.Fatalf("%d rows are held, want %d", len(h.rows), len(first.rows))
}
