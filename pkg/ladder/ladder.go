// Package ladder orders members by the price at which they have to be looked at, so that a tick of a price touches only
// those it reaches. It filters by floats; who climbs chooses rungs on the safe side, and judges what is due exactly.
package ladder

import (
	"cmp"
	"slices"
)

// Ladder keeps members in the order of the price at which they have to be looked at. A member is due at price x when
// its rung is at x or above; members that become due by a rising price stand at the negative of their price, and are
// asked for with the negative of x.
//
// It is a sorted slice: finding is a binary search, and what a change moves is a copy of memory, which for the tens of
// thousands of members of one group takes microseconds.
type Ladder[M Climber] struct{ rungs []Rung[M] }

// Climber is a member. It keeps its own place, so that a ladder needs no second index.
type Climber interface {
	comparable
	// Foothold is the member's own place.
	Foothold() *Foothold
}

// Foothold is where a member stands on its ladder. The zero Foothold stands on none.
type Foothold struct {
	Price float64
	on    bool
}

// On reports whether the member stands on a ladder.
func (f Foothold) On() bool { return f.on }

// Rung is a member with its price.
type Rung[M Climber] struct {
	Price  float64
	Member M
}

// Fill replaces all members at once by those that Foothold.Price has been set for.
func (l *Ladder[M]) Fill(members []M) {
	l.rungs = slices.Grow(l.rungs[:0], len(members))
	for _, m := range members {
		m.Foothold().on = true
		l.rungs = append(l.rungs, Rung[M]{m.Foothold().Price, m})
	}
	slices.SortFunc(l.rungs, func(a, b Rung[M]) int { return cmp.Compare(a.Price, b.Price) })
}

// Put adds a member or moves it.
func (l *Ladder[M]) Put(member M, price float64) {
	l.Remove(member)
	*member.Foothold() = Foothold{price, true}
	l.rungs = slices.Insert(l.rungs, l.search(price), Rung[M]{price, member})
}

// Remove takes a member out, if it is there.
func (l *Ladder[M]) Remove(member M) {
	at := member.Foothold()
	if !at.on {
		return
	}
	at.on = false
	for i := l.search(at.Price); i < len(l.rungs); i++ {
		if l.rungs[i].Member == member {
			l.rungs = slices.Delete(l.rungs, i, i+1)
			return
		}
	}
}

// Due returns the members at price and above, the highest last. The slice is the ladder's own, good until the next
// change.
func (l *Ladder[M]) Due(price float64) []Rung[M] { return l.rungs[l.search(price):] }

// search returns the index of the first rung at or above a price.
func (l *Ladder[M]) search(price float64) int {
	i, _ := slices.BinarySearchFunc(l.rungs, price, func(r Rung[M], x float64) int { return cmp.Compare(r.Price, x) })
	return i
}
