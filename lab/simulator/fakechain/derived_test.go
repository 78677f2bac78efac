package fakechain_test

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

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
