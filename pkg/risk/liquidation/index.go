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
	slab    slab
	handles map[chain.Hash]handle // by position
	groups  []*group              // by number
	numbers map[groupKey]uint32
	markets map[chain.Address][]*group
	packed  record // of the position that is being put
}

// NewIndex returns an empty index that yields positions whose margin ratio is below armed, a 30-decimal factor: at
// least the one at which they are liquidated (LIQ-5).
func NewIndex(armed chain.Uint) *Index {
	return &Index{armed: armed.Float() / one, handles: map[chain.Hash]handle{}, numbers: map[groupKey]uint32{},
		markets: map[chain.Address][]*group{}}
}

// Len is how many positions there are.
func (x *Index) Len() int { return len(x.handles) }

// Put adds a position, or replaces it. One that is not open is removed.
func (x *Index) Put(p perp.Position) {
	x.Remove(p.PositionKey)
	if p.Status != perp.Active {
		return
	}
	g := x.group(groupKey{p.Market, p.CollateralToken, p.IsLong})
	x.packed = pack(x.packed[:0], &p, g.number)
	h := x.slab.add(x.packed)
	x.handles[p.PositionKey] = h
	g.add(&x.slab, h)
}

// Remove takes a position out, if it is there.
func (x *Index) Remove(key chain.Hash) {
	h, known := x.handles[key]
	if !known {
		return
	}
	x.groupOf(h).drop(&x.slab, h)
	delete(x.handles, key)
	x.slab.remove(h)
}

// Get returns a position, but for what no rule reads: the funding that its owner can claim and the hash of the
// transaction that changed it last are zero in whatever the index returns.
func (x *Index) Get(key chain.Hash) (perp.Position, bool) {
	h, known := x.handles[key]
	if !known {
		return perp.Position{}, false
	}
	return x.position(h), true
}

func (x *Index) position(h handle) perp.Position { return unpack(x.slab.record(h), x.groupOf(h).key) }

func (x *Index) groupOf(h handle) *group { return x.groups[x.slab.record(h).group()] }

func (x *Index) group(key groupKey) *group {
	number, known := x.numbers[key]
	if !known {
		number = uint32(len(x.groups))
		g := &group{key: key, number: number}
		x.groups, x.numbers[key] = append(x.groups, g), number
		x.markets[key.market] = append(x.markets[key.market], g)
	}
	return x.groups[number]
}

// Each yields the positions of a market. What a pointer points to is good until the next one is yielded.
func (x *Index) Each(market chain.Address) func(yield func(*perp.Position) bool) {
	return func(yield func(*perp.Position) bool) {
		var p perp.Position
		for _, g := range x.markets[market] {
			for _, r := range g.byPrice {
				if p = x.position(r.member); !yield(&p) {
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
	var due []judgement
	for _, g := range x.markets[market] {
		reached := g.due(&x.slab, t, x.armed)
		due = slices.Grow(due, len(reached))
		for _, r := range reached {
			due = append(due, judgement{position: x.position(r.member)})
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

// judgement is the verdict on one position.
type judgement struct {
	position perp.Position
	verdict  perp.Verdict
	err      error
}

// perGoroutine is how many positions are judged by one goroutine: more of them are shared out, because a gap brings
// hundreds at once.
const perGoroutine = 32

// judgeAll judges positions, many of them side by side.
func judgeAll(due []judgement, view *perp.View) []*judgement {
	pointers := make([]*judgement, len(due))
	judge := func(from, to int) {
		for i := from; i < to; i++ {
			j := &due[i]
			j.verdict, j.err = view.Judge(j.position)
			pointers[i] = j
		}
	}
	var others sync.WaitGroup
	share := max(perGoroutine, (len(due)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
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
		return moreUrgentOf(&a.verdict, &b.verdict, a.position.PositionKey, b.position.PositionKey)
	})
	for _, j := range judged {
		found = append(slices.Grow(found, len(judged)-len(found)), Candidate{j.position, j.verdict})
	}
	return found, errors.Join(failures...)
}

// Missed returns the liquidatable positions of a sweep that are in the index and that it would not have judged at the
// same view. There must be none; that is what the sweep proves. From then on each of them is judged at every look,
// until it changes.
func (x *Index) Missed(swept []Candidate, view *perp.View) (missed []Candidate) {
	for _, c := range swept {
		h, known := x.handles[c.Position.PositionKey]
		if !known || x.position(h) != c.Position {
			continue // the sweep and the index look at different states
		}
		g := x.groupOf(h)
		t, err := view.Terms(g.key.market)
		if err != nil {
			continue // then nobody can judge
		}
		if due := g.due(&x.slab, t, x.armed); !due.has(priceEntry{g.price(&x.slab, h), h}) {
			missed = append(missed, c)
			g.distrust(&x.slab, h)
		}
	}
	return missed
}
