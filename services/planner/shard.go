package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/risk/liquidation"
)

// shard is what waits in one partition: its open positions, orders and requests, kept in the order in which prices
// reach them. It stands by itself, so that a partition can be loaded beside the others and let go at once.
type shard struct {
	index    *liquidation.Index
	orders   map[chain.Hash]place
	uiFees   map[chain.Hash]int           // how many of the orders name each UI fee
	swaps    *due.Swaps                   // limit swaps, which have no market of their own
	requests map[chain.Hash]chain.Address // the market each of them is in
	markets  map[chain.Address]*marketBook
}

// place is where an order is to be found: its market, and the key of the UI fee that it names.
type place struct {
	market chain.Address
	uiFee  chain.Hash // zero for none
}

// marketBook is what waits in one market. What has no market of its own (market swaps) is in that of the zero address.
type marketBook struct {
	triggers due.Triggers                // orders that wait for a price
	prompt   map[chain.Hash]perp.Order   // orders that are due at once
	requests map[chain.Hash]perp.Request // deposits, withdrawals and shifts
}

// newShard makes a shard whose index yields positions below a margin ratio.
func newShard(armed chain.Uint) *shard {
	return &shard{
		index: liquidation.NewIndex(armed), orders: map[chain.Hash]place{},
		uiFees: map[chain.Hash]int{}, swaps: new(due.Swaps), requests: map[chain.Hash]chain.Address{},
		markets: map[chain.Address]*marketBook{},
	}
}

func (s *shard) market(token chain.Address) *marketBook {
	m, known := s.markets[token]
	if !known {
		m = &marketBook{prompt: map[chain.Hash]perp.Order{}, requests: map[chain.Hash]perp.Request{}}
		s.markets[token] = m
	}
	return m
}

// put adds a row or replaces it. Rows that nobody waits for have no place in a shard.
func (s *shard) put(row perp.Row) {
	switch r := row.(type) {
	case perp.Position:
		s.index.Put(r)
	case perp.Order:
		s.putOrder(r)
	case perp.Request:
		s.putRequest(r)
	}
}

func (s *shard) putOrder(o perp.Order) {
	s.removeOrder(o.Key)
	if !o.Status.Pending() && o.Status != perp.Frozen {
		return
	}
	at := place{market: o.Market}
	if !o.UIFeeReceiver.IsZero() {
		at.uiFee = perp.UIFeeKey(o.UIFeeReceiver)
		s.uiFees[at.uiFee]++
	}
	s.orders[o.Key] = at
	m := s.market(o.Market)
	switch {
	case o.OrderType.IsMarket():
		m.prompt[o.Key] = o
	case o.OrderType.IsSwap():
		s.swaps.Put(o)
	default:
		m.triggers.Put(o)
	}
}

func (s *shard) removeOrder(key chain.Hash) {
	if at, known := s.orders[key]; known {
		if s.uiFees[at.uiFee]--; s.uiFees[at.uiFee] <= 0 {
			delete(s.uiFees, at.uiFee)
		}
		m := s.market(at.market)
		delete(m.prompt, key)
		m.triggers.Remove(key)
		s.swaps.Remove(key)
		delete(s.orders, key)
	}
}

func (s *shard) putRequest(r perp.Request) {
	s.removeRequest(r.Key)
	if r.Status.Pending() {
		s.requests[r.Key] = r.Market
		s.market(r.Market).requests[r.Key] = r
	}
}

func (s *shard) removeRequest(key chain.Hash) {
	if market, known := s.requests[key]; known {
		delete(s.market(market).requests, key)
		delete(s.requests, key)
	}
}
