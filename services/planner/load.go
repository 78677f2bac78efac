package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// load makes the book that of a snapshot. Only what differs is put: the index keeps its order.
func (b *book) load(s pg.Snapshot) {
	b.block, b.generation = s.Watermark.BlockRef, uint32(s.Generation)
	b.rows, b.byToken = make(rowIndex, len(s.Markets)+len(s.Values)+len(s.Parameters)), map[chain.Address][]chain.Address{}
	for _, m := range s.Markets {
		b.putMarket(m)
	}
	add(b.rows, s.Values)
	add(b.rows, s.Parameters)
	b.loadPositions(s.Positions)
	b.loadOrders(s.Orders)
	for _, m := range b.markets {
		clear(m.requests)
	}
	for _, r := range s.Requests {
		b.putRequest(r)
	}
}

func (b *book) loadPositions(positions []perp.Position) {
	there := make(map[chain.Hash]bool, len(positions))
	for _, p := range positions {
		there[p.PositionKey] = true
		if old, known := b.index.Get(p.PositionKey); !known || old != p {
			b.index.Put(p)
		}
	}
	for _, p := range b.index.Positions(nil) {
		if !there[p.PositionKey] {
			b.index.Remove(p.PositionKey)
		}
	}
}

func (b *book) loadOrders(orders []perp.Order) {
	there := make(map[chain.Hash]bool, len(orders))
	for _, o := range orders {
		there[o.Key] = true
		if old, known := b.orders[o.Key]; !known || old.Changes != o.Changes || old.Stamp != o.Stamp {
			b.putOrder(o)
		}
	}
	for key := range b.orders {
		if !there[key] {
			b.removeOrder(key)
		}
	}
}
