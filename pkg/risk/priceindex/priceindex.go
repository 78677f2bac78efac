// Package priceindex keeps members sorted by the price at which they have to be judged, so that a tick of a price
// touches only those it reaches. Prices are floats and only filter: the user rounds them to the safe side, and judges
// exactly whether a member is due.
package priceindex

import (
	"cmp"
	"slices"
)

// Index keeps members in the order of the price at which they have to be judged. A member is due at price x when its
// own price is x or above; members that become due by a rising price stand at the negative of their price, and are
// asked for with the negative of x.
//
// It is a sorted slice: finding is a binary search, and what a change moves is a copy of memory, which for the tens of
// thousands of members of one group takes microseconds.
type Index[M Member] struct{ entries []Entry[M] }

// Member is what an index holds. It keeps its own slot, so that an index needs no map of its members.
type Member interface {
	comparable
	// Slot returns the member's own slot.
	Slot() *Slot
}

// Slot is where a member stands in its index. The zero Slot is in none.
type Slot struct {
	Price float64
	on    bool
}

// Entry is a member with its price.
type Entry[M Member] struct {
	Price  float64
	Member M
}

// Fill replaces all members at once by those that Slot.Price has been set for.
func (x *Index[M]) Fill(members []M) {
	x.entries = slices.Grow(x.entries[:0], len(members))
	for _, m := range members {
		m.Slot().on = true
		x.entries = append(x.entries, Entry[M]{m.Slot().Price, m})
	}
	slices.SortFunc(x.entries, func(a, b Entry[M]) int { return cmp.Compare(a.Price, b.Price) })
}

// Put adds a member or moves it.
func (x *Index[M]) Put(member M, price float64) {
	x.Remove(member)
	*member.Slot() = Slot{price, true}
	x.entries = slices.Insert(x.entries, x.search(price), Entry[M]{price, member})
}

// Remove takes a member out, if it is there.
func (x *Index[M]) Remove(member M) {
	at := member.Slot()
	if !at.on {
		return
	}
	at.on = false
	for i := x.search(at.Price); i < len(x.entries); i++ {
		if x.entries[i].Member == member {
			x.entries = slices.Delete(x.entries, i, i+1)
			return
		}
	}
}

// Due returns the members at price and above, the highest last. The slice is the index's own, good until the next
// change.
func (x *Index[M]) Due(price float64) []Entry[M] { return x.entries[x.search(price):] }

// search returns the index of the first entry at or above a price.
func (x *Index[M]) search(price float64) int {
	i, _ := slices.BinarySearchFunc(x.entries, price,
		func(r Entry[M], x float64) int { return cmp.Compare(r.Price, x) })
	return i
}
