package liquidation

import (
	"cmp"
	"slices"
)

// ladder keeps members in the order of the price at which they have to be looked at. A member is due at price x when its rung is at x or above; members
// that become due by a rising price stand at the negative of their price, and are asked for with the negative of x.
//
// It is a sorted slice: finding is a binary search, and what a change moves is a copy of memory, which for the tens of thousands of members of one group
// takes microseconds.
type ladder[M comparable] struct {
	rungs []rung[M]
	at    map[M]float64
}

type rung[M comparable] struct {
	price  float64
	member M
}

func newLadder[M comparable]() ladder[M] { return ladder[M]{at: map[M]float64{}} }

// fill replaces all members at once.
func (l *ladder[M]) fill(rungs []rung[M]) {
	slices.SortFunc(rungs, func(a, b rung[M]) int { return cmp.Compare(a.price, b.price) })
	l.rungs = rungs
	clear(l.at)
	for _, r := range rungs {
		l.at[r.member] = r.price
	}
}

// put adds a member or moves it.
func (l *ladder[M]) put(member M, price float64) {
	if old, known := l.at[member]; known {
		if old == price {
			return
		}
		l.remove(member)
	}
	l.at[member] = price
	l.rungs = slices.Insert(l.rungs, l.search(price), rung[M]{price, member})
}

// remove takes a member out, if it is there.
func (l *ladder[M]) remove(member M) {
	price, known := l.at[member]
	if !known {
		return
	}
	delete(l.at, member)
	for i := l.search(price); i < len(l.rungs) && l.rungs[i].price == price; i++ {
		if l.rungs[i].member == member {
			l.rungs = slices.Delete(l.rungs, i, i+1)
			return
		}
	}
}

// due returns the members at price and above, the highest last. The slice is the ladder's own, good until the next change.
func (l *ladder[M]) due(price float64) []rung[M] { return l.rungs[l.search(price):] }

// search returns the index of the first rung at or above a price.
func (l *ladder[M]) search(price float64) int {
	i, _ := slices.BinarySearchFunc(l.rungs, price, func(r rung[M], x float64) int { return cmp.Compare(r.price, x) })
	return i
}
