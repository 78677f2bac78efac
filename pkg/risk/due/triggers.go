package due

import (
	"math"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/priceindex"
)

// Triggers keeps a market's waiting orders (limit, stop, take-profit) in the order of their triggers, so that a tick
// looks only at those it reaches. It is for one goroutine at a time. The zero Triggers is empty.
type Triggers struct {
	orders          map[chain.Hash]*waiting
	falling, rising priceindex.Index[*waiting] // executable when the price falls to the trigger, or rises to it
}

type waiting struct {
	order perp.Order
	slot  priceindex.Slot
}

// Slot implements [priceindex.Member].
func (w *waiting) Slot() *priceindex.Slot { return &w.slot }

// slack covers the rounding of prices to floats, many times over.
const slack = 1e-12

// Put adds an order that waits for a price, or replaces it.
func (t *Triggers) Put(o perp.Order) {
	t.Remove(o.Key)
	if t.orders == nil {
		t.orders = map[chain.Hash]*waiting{}
	}
	w := &waiting{order: o}
	t.orders[o.Key] = w
	if price := o.TriggerPrice.Float(); waitsForFall(o) {
		t.falling.Put(w, price)
	} else {
		t.rising.Put(w, -price)
	}
}

// Remove takes an order out, if it is there.
func (t *Triggers) Remove(key chain.Hash) {
	if w, known := t.orders[key]; known {
		if waitsForFall(w.order) {
			t.falling.Remove(w)
		} else {
			t.rising.Remove(w)
		}
		delete(t.orders, key)
	}
}

// Reached calls yield for every order whose trigger an index price may meet; [perp.Triggered] knows exactly.
func (t *Triggers) Reached(index perp.Price, yield func(perp.Order)) {
	low, high := index.Min.Float(), index.Max.Float()
	for _, r := range t.falling.Due(low - math.Abs(low)*slack) {
		yield(r.Member.order)
	}
	for _, r := range t.rising.Due(-high - math.Abs(high)*slack) {
		yield(r.Member.order)
	}
}

// waitsForFall reports whether an order becomes executable when the price falls; see [perp.Triggered].
func waitsForFall(o perp.Order) bool {
	longWaitsForFall := o.OrderType == perp.LimitIncrease || o.OrderType == perp.StopLossDecrease
	return longWaitsForFall == o.IsLong
}
