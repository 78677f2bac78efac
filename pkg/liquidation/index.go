package liquidation

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Index finds, at each tick of a price, exactly the positions that the tick can have brought near their liquidation,
// and judges only those (LIQ-2). A float filter orders the positions by the price at which they have to be judged; the
// venue's 256-bit integers judge. The filter never calls safe what the integers call liquidatable: property tests hold
// it against the sweep, and in production every [Sweep] does, see [Index.Missed].
//
// It is for one goroutine at a time.
type Index struct {
	armed   float64
	entries map[chain.Hash]*entry
	groups  map[groupKey]*group
	markets map[chain.Address][]*group
}

// NewIndex returns an empty index that yields positions whose margin ratio is below armed, a 30-decimal factor: at
// least the one at which they are liquidated (LIQ-5).
func NewIndex(armed perp.Uint) *Index {
	return &Index{
		armed: armed.Float() / one, entries: map[chain.Hash]*entry{}, groups: map[groupKey]*group{},
		markets: map[chain.Address][]*group{},
	}
}

// Len is how many positions there are.
func (x *Index) Len() int { return len(x.entries) }

// Put adds a position, or replaces it. One that is not open is removed.
func (x *Index) Put(p perp.Position) {
	x.Remove(p.PositionKey)
	if p.Status != perp.Active {
		return
	}
	e := newEntry(p)
	e.group = x.group(groupKey{p.Market, p.CollateralToken, p.IsLong})
	x.entries[p.PositionKey] = e
	e.group.add(e)
}

// Remove takes a position out, if it is there.
func (x *Index) Remove(key chain.Hash) {
	if e, known := x.entries[key]; known {
		e.group.drop(e)
		delete(x.entries, key)
	}
}

// Get returns a position.
func (x *Index) Get(key chain.Hash) (perp.Position, bool) {
	e, known := x.entries[key]
	if !known {
		return perp.Position{}, false
	}
	return e.position, true
}

// Positions lists all positions, those of the given keys first (LIQ-3). They are the index's own and must not be
// changed.
func (x *Index) Positions(first []chain.Hash) []*perp.Position {
	all := make([]*perp.Position, 0, len(x.entries))
	leading := make(map[chain.Hash]bool, len(first))
	for _, key := range first {
		if e, known := x.entries[key]; known && !leading[key] {
			leading[key] = true
			all = append(all, &e.position)
		}
	}
	for key, e := range x.entries {
		if !leading[key] {
			all = append(all, &e.position)
		}
	}
	return all
}

func (x *Index) group(key groupKey) *group {
	g, known := x.groups[key]
	if !known {
		g = &group{key: key, members: map[*entry]struct{}{}}
		x.groups[key] = g
		x.markets[key.market] = append(x.markets[key.market], g)
	}
	return g
}

// Each yields the positions of a market. They are the index's own and must not be changed.
func (x *Index) Each(market chain.Address) func(yield func(*perp.Position) bool) {
	return func(yield func(*perp.Position) bool) {
		for _, g := range x.markets[market] {
			for e := range g.members {
				if !yield(&e.position) {
					return
				}
			}
		}
	}
}

// Markets lists the markets that have positions or once had, in no order.
func (x *Index) Markets() []chain.Address {
	markets := make([]chain.Address, 0, len(x.markets))
	for m := range x.markets {
		markets = append(markets, m)
	}
	return markets
}

// Candidates returns the positions of a market whose margin ratio is below the armed one, most urgent first, each with
// its exact verdict. Positions that could not be judged are named in the error; the others stand beside it.
func (x *Index) Candidates(market chain.Address, view *perp.View) ([]Candidate, error) {
	t, err := view.Terms(market)
	if err != nil {
		return nil, fmt.Errorf("looking for liquidations: %w", err)
	}
	var due []*entry
	for _, g := range x.markets[market] {
		for _, r := range g.due(t, x.armed) {
			due = append(due, r.Member)
		}
	}
	judged := judgeAll(due, view)
	near := slices.DeleteFunc(judged, func(j *judgement) bool {
		return j.err == nil && !j.verdict.Liquidatable && j.verdict.Ratio.Float()/one >= x.armed
	})
	return inOrder(near)
}

// MostUrgentFirst orders the candidates of several indexes as [Index.Candidates] orders those of one.
func MostUrgentFirst(found []Candidate) { slices.SortFunc(found, moreUrgent) }

// judgement is the verdict on one entry.
type judgement struct {
	entry   *entry
	verdict perp.Verdict
	err     error
}

// crowded is how many positions are judged by one goroutine: more of them are shared out, because a gap brings hundreds
// at once.
const crowded = 32

// judgeAll judges entries, many of them side by side.
func judgeAll(due []*entry, view *perp.View) []*judgement {
	judged := make([]judgement, len(due))
	pointers := make([]*judgement, len(due))
	judge := func(from, to int) {
		for i := from; i < to; i++ {
			j := &judged[i]
			j.entry = due[i]
			j.verdict, j.err = view.Judge(due[i].position)
			pointers[i] = j
		}
	}
	var others sync.WaitGroup
	share := max(crowded, (len(due)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for from := share; from < len(due); from += share {
		others.Go(func() { judge(from, min(from+share, len(due))) })
	}
	judge(0, min(share, len(due)))
	others.Wait()
	return pointers
}

// inOrder makes candidates of judgements, most urgent first, and collects the failures.
func inOrder(judged []*judgement) (found []Candidate, err error) {
	var failures []error
	judged = slices.DeleteFunc(judged, func(j *judgement) bool {
		if j.err != nil {
			failures = append(failures, j.err)
		}
		return j.err != nil
	})
	slices.SortFunc(judged, func(a, b *judgement) int {
		return moreUrgentOf(&a.verdict, &b.verdict, a.entry.position.PositionKey, b.entry.position.PositionKey)
	})
	for _, j := range judged {
		found = append(slices.Grow(found, len(judged)-len(found)), Candidate{j.entry.position, j.verdict})
	}
	return found, errors.Join(failures...)
}

// Missed returns the liquidatable positions of a sweep that are in the index and that it would not have judged at the
// same view. There must be none; that is what the sweep proves.
func (x *Index) Missed(swept []Candidate, view *perp.View) (missed []Candidate) {
	for _, c := range swept {
		e, known := x.entries[c.Position.PositionKey]
		if !known || e.position != c.Position {
			continue // the sweep and the index look at different states
		}
		t, err := view.Terms(e.group.key.market)
		if err != nil {
			continue // then nobody can judge
		}
		e.group.due(t, x.armed) // renews the certificate if need be
		if e.place.Price < e.group.at(t) {
			missed = append(missed, c)
		}
	}
	return missed
}
