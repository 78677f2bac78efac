package liquidation

import (
	"context"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Round is one sweep over several indexes, slice by slice, so that ticks come between: every position that is in an
// index, and stays there unchanged, is judged once, each slice by the view of its moment. A position that changes
// meanwhile may be left out; the change itself had the index look at it. It is for one goroutine at a time, the indexes'.
type Round struct {
	indexes []*Index
	first   []chain.Hash
	led     map[chain.Hash]bool // those of first that have been judged
	next    handle              // in the first of indexes
	slice   []perp.Position
}

// NewRound begins a sweep that judges the positions of the given keys before the others (LIQ-3).
func NewRound(indexes []*Index, first []chain.Hash) *Round {
	return &Round{indexes: slices.Clone(indexes), first: first, led: make(map[chain.Hash]bool, len(first))}
}

// Judge judges the next slice, of at most so many positions. Left is false after the last one; for the rest see [Sweep].
func (r *Round) Judge(ctx context.Context, view *perp.View, workers, most int) (s Swept, left bool, err error) {
	left = r.gather(most)
	s, err = Sweep(ctx, r.slice, view, workers)
	return s, left, err
}

// gather makes the next slice.
func (r *Round) gather(most int) (left bool) {
	r.slice = r.slice[:0]
	r.lead(most)
	for len(r.first) == 0 && len(r.slice) < most && len(r.indexes) > 0 {
		r.fill(most)
	}
	return len(r.first)+len(r.indexes) > 0
}

// lead takes the positions that go first.
func (r *Round) lead(most int) {
	for len(r.first) > 0 && len(r.slice) < most {
		key := r.first[0]
		r.first = r.first[1:]
		for _, x := range r.indexes {
			if p, known := x.Get(key); known && !r.led[key] {
				r.led[key] = true
				r.slice = append(r.slice, p)
			}
		}
	}
}

// fill takes positions of the first index, and leaves it when it has no more.
func (r *Round) fill(most int) {
	x := r.indexes[0]
	next, left := x.slab.walk(r.next, func(h handle, packed record) bool {
		if len(r.slice) == most {
			return false
		}
		if !r.led[chain.Hash(packed.key())] {
			r.slice = append(r.slice, x.position(h))
		}
		return true
	})
	if r.next = next; !left {
		r.indexes, r.next = r.indexes[1:], 0
	}
}

// Add counts another slice of the same sweep in.
func (s *Swept) Add(other Swept) {
	s.Liquidatable = append(s.Liquidatable, other.Liquidatable...)
	s.Risky = append(s.Risky, other.Risky...)
	s.Armed, s.Watch = s.Armed+other.Armed, s.Watch+other.Watch
}
