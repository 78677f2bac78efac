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
type ladder[M climber] struct{ rungs []rung[M] }

// climber is a member. It keeps its own place, so that a ladder needs no second index.
type climber interface {
	comparable
	foothold() *foothold
}

// foothold is where a member stands on its ladder.
type foothold struct {
	price float64
	on    bool
}

type rung[M climber] struct {
	price  float64
	member M
}

// fill replaces all members at once by those that foothold.price has been set for.
func (l *ladder[M]) fill(members []M) {
	l.rungs = slices.Grow(l.rungs[:0], len(members))
	for _, m := range members {
		m.foothold().on = true
		l.rungs = append(l.rungs, rung[M]{m.foothold().price, m})
	}
	slices.SortFunc(l.rungs, func(a, b rung[M]) int { return cmp.Compare(a.price, b.price) })
}

// put adds a member or moves it.
func (l *ladder[M]) put(member M, price float64) {
	l.remove(member)
	*member.foothold() = foothold{price, true}
	l.rungs = slices.Insert(l.rungs, l.search(price), rung[M]{price, member})
}

// remove takes a member out, if it is there.
func (l *ladder[M]) remove(member M) {
	at := member.foothold()
	if !at.on {
		return
	}
	at.on = false
	for i := l.search(at.price); i < len(l.rungs); i++ {
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
