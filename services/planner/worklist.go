package planner

import (
	"iter"
	"math"
	"time"

	"perpkeeper/pkg/chain"
)

// worklist is which markets are still to be looked at: those whose prices have moved, and what is left of a pass over
// everything. They are looked at in slices of time, so that a price that moves meanwhile does not wait for all of them.
// The two kinds take turns, and one look serves both.
type worklist struct {
	slice time.Duration // after which a slice ends, with the market that it has begun

	moved map[chain.Address]time.Time // when the first report came that a market has not been judged with
	turn  bool                        // of the pass

	left    map[chain.Address]bool // of the pass
	passing bool                   // a pass is under way
	repeat  bool                   // it publishes all that is due, and not only what is new
	after   *bool                  // another pass is to follow it, and whether that repeats; nil for none
}

// newWorklist makes one without a limit on a slice: whoever drives the planner has each pass made as a whole.
func newWorklist() worklist {
	return worklist{slice: math.MaxInt64, moved: map[chain.Address]time.Time{}}
}

// on reports whether any market is to be looked at.
func (w *worklist) on() bool { return w.passing || len(w.moved) > 0 }

// clear drops all of it.
func (w *worklist) clear() {
	slice := w.slice
	*w = newWorklist()
	w.slice = slice
}

// move takes in markets whose prices have moved by reports that came at a time.
func (w *worklist) move(markets map[chain.Address]bool, arrived time.Time) {
	for market := range markets {
		if _, waits := w.moved[market]; !waits {
			w.moved[market] = arrived
		}
	}
}

// begin begins a pass over these markets, unless one is under way: then another is to follow, with what there is then.
func (w *worklist) begin(markets map[chain.Address]bool, repeat bool) {
	if w.passing {
		repeat = repeat || w.after != nil && *w.after
		w.after = &repeat
		return
	}
	w.left, w.passing, w.repeat = markets, true, repeat
}

// end ends the pass, if nothing is left of it. It returns whether another is to follow.
func (w *worklist) end() (ended bool, after *bool) {
	if !w.passing || len(w.left) > 0 {
		return false, nil
	}
	after = w.after
	w.passing, w.after = false, nil
	return true, after
}

// looked is what a slice has looked at.
type looked struct {
	waited []time.Time     // when the first report came, for each market that had one to be judged with
	repeat []chain.Address // the markets of which all that is due is to be published again
}

// next yields the markets of a slice that began at a time, and notes in l which they were.
func (w *worklist) next(began time.Time, l *looked) iter.Seq[chain.Address] {
	return func(yield func(chain.Address) bool) {
		for len(w.left)+len(w.moved) > 0 {
			market := w.choose()
			if arrived, waits := w.moved[market]; waits {
				l.waited = append(l.waited, arrived)
			}
			if w.repeat && w.left[market] {
				l.repeat = append(l.repeat, market)
			}
			delete(w.moved, market)
			delete(w.left, market)
			if !yield(market) || time.Since(began) >= w.slice {
				return
			}
		}
	}
}

// choose returns the market that is to be looked at next: the one whose price has waited for longest, or one of the
// pass.
func (w *worklist) choose() (market chain.Address) {
	w.turn = len(w.left) > 0 && (!w.turn || len(w.moved) == 0)
	if w.turn {
		for market = range w.left {
			return market
		}
	}
	var longest time.Time
	for m, arrived := range w.moved {
		if longest.IsZero() || arrived.Before(longest) {
			market, longest = m, arrived
		}
	}
	return market
}
