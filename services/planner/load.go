package planner

import (
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/due"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// apply brings the book to the state after changes. A reload begins it anew.
func (b *book) apply(c pg.Changes) {
	if c.Reload {
		*b = *newBook(b.armed)
	}
	b.block, b.generation, b.seen = c.Watermark.BlockRef, uint32(c.Generation), c.Seen
	merge(b.rows, perp.Markets, c.Markets)
	merge(b.rows, perp.MarketValues, c.Values)
	merge(b.rows, perp.Parameters, c.Parameters)
	if len(c.Markets.Changed)+len(c.Markets.Removed) > 0 {
		b.sortTokens()
	}
	if slices.ContainsFunc(c.Values.Changed, func(v perp.MarketValue) bool { return v.Measure == perp.GlvMarket }) ||
		len(c.Values.Removed) > 0 {
		b.glvs = due.GlvsOf(b.rows.values)
	}
	for _, p := range c.Positions.Changed {
		b.index.Put(p)
	}
	for _, key := range c.Positions.Removed {
		b.index.Remove(key)
	}
	for _, o := range c.Orders.Changed {
		b.putOrder(o)
	}
	for _, key := range c.Orders.Removed {
		b.removeOrder(key)
	}
	for _, r := range c.Requests.Changed {
		b.putRequest(r)
	}
	for _, key := range c.Requests.Removed {
		b.removeRequest(key)
	}
}

// values yields the measures among the rows.
func (x rowIndex) values(yield func(perp.MarketValue) bool) {
	for _, row := range x {
		if v, is := row.(perp.MarketValue); is && !yield(v) {
			return
		}
	}
}

// merge takes the changes of a table that belongs to everybody.
func merge[R perp.Row](rows rowIndex, table perp.Table, d pg.Delta[R]) {
	for _, r := range d.Changed {
		rows[r.RowKey()] = r
	}
	for _, key := range d.Removed {
		delete(rows, perp.RowKey{Table: table, Key: key})
	}
}

// sortTokens finds out anew which markets follow which token.
func (b *book) sortTokens() {
	b.byToken = map[chain.Address][]chain.Address{}
	for _, row := range b.rows {
		if m, is := row.(perp.Market); is {
			for _, token := range m.Tokens() {
				b.byToken[token] = append(b.byToken[token], m.MarketToken)
			}
		}
	}
}
