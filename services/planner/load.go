package planner

import (
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/due"
)

// apply brings the book to the state after changes.
func (b *book) apply(c pg.Changes) {
	b.stand(c)
	merge(b, perp.Markets, c.Markets)
	merge(b, perp.MarketValues, c.Values)
	merge(b, perp.Parameters, c.Parameters)
	if len(c.Markets.Changed)+len(c.Markets.Removed) > 0 {
		b.sortTokens()
	}
	if slices.ContainsFunc(c.Values.Changed, func(v perp.MarketValue) bool { return v.Measure == perp.GlvMarket }) ||
		len(c.Values.Removed) > 0 {
		b.glvs = due.GlvsOf(b.rows.values)
	}
	enter(b, c.Positions, func(s *shard, key chain.Hash) { s.index.Remove(key) })
	enter(b, c.Orders, (*shard).removeOrder)
	enter(b, c.Requests, (*shard).removeRequest)
}

// enter takes the changes of a table of shards. A row stands in one shard only: a key of a lost branch may be given
// again in another partition.
func enter[R perp.Row](b *book, d pg.Delta[R], remove func(*shard, chain.Hash)) {
	for i, row := range d.Changed {
		for partition, s := range b.shards {
			if partition != d.Parts[i] {
				remove(s, row.RowKey().Key)
			}
		}
		b.shard(d.Parts[i]).put(row)
	}
	for _, key := range d.Removed {
		for _, s := range b.shards {
			remove(s, key)
		}
	}
}

// take takes in a row of a load.
func (b *book) take(partition int, row perp.Row) error {
	switch row.(type) {
	case perp.Position, perp.Order, perp.Request:
		b.shard(partition).put(row)
	case perp.OracleSource: // nothing here asks for it
	default:
		b.put(row)
	}
	return nil
}

// put takes in a row of everybody's. A parameter that an account has set for itself counts for orders that name it.
func (b *book) put(row perp.Row) {
	if p, is := row.(perp.Parameter); is && p.Source == perp.FromAccount && !b.uiFees[p.Key] {
		return
	}
	b.rows[row.RowKey()] = row
}

// loaded completes a book whose rows have all been taken.
func (b *book) loaded(c pg.Changes) {
	for _, partition := range c.Seen.Partitions {
		b.shard(partition) // one with nothing in it is loaded as well
	}
	b.sortTokens()
	b.glvs = due.GlvsOf(b.rows.values)
	b.stand(c)
}

// stand sets the block that the book is as of.
func (b *book) stand(c pg.Changes) {
	b.block, b.generation, b.partitions, b.seen = c.Watermark, uint32(c.Generation), c.Partitions, c.Seen
}

// adopt takes the shards of another book of the same generation. Until the changes since both have been applied (see
// [pg.Seen.With]) the book stands for no block.
func (b *book) adopt(other *book) {
	maps.Copy(b.shards, other.shards)
	for key := range other.uiFees {
		b.uiFees[key] = true
		if row, known := other.rows[uiFee(key)]; known {
			b.rows[uiFee(key)] = row
		}
	}
	b.seen = b.seen.With(other.seen)
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
func merge[R perp.Row](b *book, table perp.Table, d pg.Delta[R]) {
	for _, r := range d.Changed {
		b.put(r)
	}
	for _, key := range d.Removed {
		delete(b.rows, perp.RowKey{Table: table, Key: key})
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
