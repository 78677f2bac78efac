package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/due"
	"perpkeeper/pkg/liquidation"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// book is what a planner knows: everybody's markets, measures and parameters, and the open positions, orders and
// requests of its shards, kept in the order in which prices reach them. It stands for one block. It is for one
// goroutine at a time.
type book struct {
	block      chain.BlockRef // zero until there is a state
	generation uint32
	seen       pg.Seen // how far the state has been taken in
	rows       rowIndex

	armed    perp.Uint // the index yields positions below this margin ratio
	index    *liquidation.Index
	orders   map[chain.Hash]perp.Order
	swaps    *due.Swaps                   // limit swaps, which have no market of their own
	requests map[chain.Hash]chain.Address // the market each of them is in
	markets  map[chain.Address]*marketBook
	glvs     due.Glvs
	byToken  map[chain.Address][]chain.Address // the markets whose jobs a token's price decides
}

// marketBook is what waits in one market. What has no market of its own (market swaps) is in that of the zero address.
type marketBook struct {
	triggers due.Triggers                // orders that wait for a price
	prompt   map[chain.Hash]perp.Order   // orders that are due at once
	requests map[chain.Hash]perp.Request // deposits, withdrawals and shifts
}

func newBook(armed perp.Uint) *book {
	return &book{
		rows: rowIndex{}, armed: armed, index: liquidation.NewIndex(armed), orders: map[chain.Hash]perp.Order{},
		swaps:    new(due.Swaps),
		requests: map[chain.Hash]chain.Address{}, markets: map[chain.Address]*marketBook{},
		byToken: map[chain.Address][]chain.Address{},
	}
}

// rowIndex holds the rows that belong to everybody.
type rowIndex map[perp.RowKey]perp.Row

// Get implements [perp.Rows].
func (x rowIndex) Get(k perp.RowKey) perp.Row { return x[k] }

func (b *book) market(token chain.Address) *marketBook {
	m, known := b.markets[token]
	if !known {
		m = &marketBook{prompt: map[chain.Hash]perp.Order{}, requests: map[chain.Hash]perp.Request{}}
		b.markets[token] = m
	}
	return m
}

func (b *book) putOrder(o perp.Order) {
	b.removeOrder(o.Key)
	if !o.Status.Pending() && o.Status != perp.Frozen {
		return
	}
	b.orders[o.Key] = o
	m := b.market(o.Market)
	switch {
	case o.OrderType.IsMarket():
		m.prompt[o.Key] = o
	case o.OrderType.IsSwap():
		b.swaps.Put(o)
	default:
		m.triggers.Put(o)
	}
}

func (b *book) removeOrder(key chain.Hash) {
	if old, known := b.orders[key]; known {
		m := b.market(old.Market)
		delete(m.prompt, key)
		m.triggers.Remove(key)
		b.swaps.Remove(key)
		delete(b.orders, key)
	}
}

func (b *book) putRequest(r perp.Request) {
	b.removeRequest(r.Key)
	if r.Status.Pending() {
		b.requests[r.Key] = r.Market
		b.market(r.Market).requests[r.Key] = r
	}
}

func (b *book) removeRequest(key chain.Hash) {
	if market, known := b.requests[key]; known {
		delete(b.market(market).requests, key)
		delete(b.requests, key)
	}
}

// reached returns the markets whose jobs a change of these tokens' prices may decide.
func (b *book) reached(tokens map[chain.Address]bool) map[chain.Address]bool {
	markets := map[chain.Address]bool{}
	for token := range tokens {
		for _, m := range b.byToken[token] {
			markets[m] = true
		}
	}
	if b.swaps.Follows(b.rows, tokens) {
		markets[noMarket] = true
	}
	return markets
}

// noMarket is that of orders that only swap.
var noMarket chain.Address

// everything returns all markets in which anything waits.
func (b *book) everything() map[chain.Address]bool {
	markets := map[chain.Address]bool{}
	for m := range b.markets {
		markets[m] = true
	}
	for _, m := range b.index.Markets() {
		markets[m] = true
	}
	return markets
}
