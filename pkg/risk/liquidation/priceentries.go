package liquidation

import (
	"cmp"
	"math"
	"slices"
)

// priceEntries are the members of a group in the order of the price at which they have to be judged: a
// [priceindex.Index] in eight bytes a member.
type priceEntries []priceEntry

// priceEntry is a member with its price: a float of 32 bits, rounded to the side on which it is looked at early.
type priceEntry struct {
	price  float32
	member handle
}

// upward rounds to the next float of 32 bits that is not less.
func upward(price float64) float32 {
	if rounded := float32(price); float64(rounded) >= price {
		return rounded
	}
	return math.Nextafter32(float32(price), float32(math.Inf(1)))
}

func (r priceEntries) sort() {
	slices.SortFunc(r, func(a, b priceEntry) int { return cmp.Compare(a.price, b.price) })
}

// search returns the index of the first entry at or above a price.
func (r priceEntries) search(price float32) int {
	i, _ := slices.BinarySearchFunc(r, price, func(r priceEntry, x float32) int { return cmp.Compare(r.price, x) })
	return i
}

// due returns the members at a price and above, the highest last.
func (r priceEntries) due(price float64) priceEntries {
	i, _ := slices.BinarySearchFunc(r, price,
		func(r priceEntry, x float64) int { return cmp.Compare(float64(r.price), x) })
	return r[i:]
}

// has reports whether an entry is among them.
func (r priceEntries) has(wanted priceEntry) bool {
	for i := r.search(wanted.price); i < len(r) && r[i].price == wanted.price; i++ {
		if r[i] == wanted {
			return true
		}
	}
	return false
}

// with returns the judging prices and another one.
func (r priceEntries) with(added priceEntry) priceEntries {
	return slices.Insert(r, r.search(added.price), added)
}

// without returns the judging prices but for a member that stands at an index or behind it.
func (r priceEntries) without(from int, member handle) priceEntries {
	for i := from; i < len(r); i++ {
		if r[i].member == member {
			return slices.Delete(r, i, i+1)
		}
	}
	return r
}
