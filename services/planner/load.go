package planner

import (
	"perpkeeper/pkg/chain"
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
