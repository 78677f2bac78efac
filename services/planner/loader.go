package planner

import (
	"context"
	"slices"

	"perpkeeper/pkg/pg"
)

// loader brings partitions in beside the plan, one at a time: the others are planned and followed on meanwhile, however
// many positions there are to load.
type loader struct {
	spawn   func(func()) // runs a load beside the plan, or at once where somebody else drives the planner
	arrived chan arrival // holds one
	busy    bool         // one is under way or has arrived
	beside  *book        // what has been loaded and is not in the planner's book yet; nil for nothing
	void    bool         // the planner's book leads no further: what is beside will replace it
}

// arrival is what became of a load: a book of its partitions, nil while there is no state.
type arrival struct {
	book *book
	err  error
}

func newLoader() loader {
	return loader{spawn: func(load func()) { load() }, arrived: make(chan arrival, 1)}
}

// ready reports whether what is beside may be taken over. What replaces a book does so when it has all partitions, or
// at once where there is nothing to replace.
func (l *loader) ready(present *book, mine []int) bool {
	return l.beside != nil && (!l.void || present.block.Hash.IsZero() || len(l.beside.missing(mine)) == 0)
}

// next returns what is to be loaded now: one of the partitions that are missing, or nothing but everybody's rows where
// there are not even those.
func (l *loader) next(present *book, mine []int) (partitions []int, needed bool) {
	if l.busy {
		return nil, false
	}
	if l.void {
		present = l.beside
	}
	if present == nil {
		return mine[:min(1, len(mine))], true
	}
	missing := present.missing(mine)
	return missing[:min(1, len(missing))], len(missing) > 0
}

// load begins to load what is missing.
func (p *Planner) load(ctx context.Context, mine []int) {
	partitions, needed := p.loads.next(p.book, mine)
	if !needed {
		return
	}
	p.loads.busy = true
	empty := newBook(p.book.armed)
	p.loads.spawn(func() {
		b, err := p.read(ctx, empty, partitions)
		p.loads.arrived <- arrival{b, err}
	})
}

// read fills an empty book with some partitions, with price indexes computed for the present prices. It touches nothing
// of the plan's.
func (p *Planner) read(ctx context.Context, b *book, partitions []int) (*book, error) {
	c, err := p.store.Load(ctx, partitions, b.take)
	if err != nil || !c.HasView() {
		return nil, err
	}
	b.loaded(c)
	keys := b.named()
	fees, err := p.lookUp(ctx, keys)
	if err != nil {
		return nil, err
	}
	b.learn(keys, fees)
	m := p.momentOf(b)
	for market := range b.indexed() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// What cannot be judged is named when it is looked at in earnest.
		_, _ = b.candidates(market, m.View())
	}
	return b, nil
}

// arrive takes a load in.
func (p *Planner) arrive(ctx context.Context, a arrival) error {
	p.loads.busy = false
	switch beside := p.loads.beside; {
	case a.err != nil:
		p.stateReady.Fail(a.err.Error())
		return a.err
	case a.book == nil: // the next change of the state is the time to try again
		return nil
	case beside != nil && beside.generation == a.book.generation:
		beside.adopt(a.book)
	default:
		p.loads.beside = a.book
	}
	return p.reload(ctx)
}

// follow asks what became of the state since the planner's last look; with what is beside, where that is ready. Kept
// are partitions that it goes on with while it has them.
func (p *Planner) follow(ctx context.Context, mine, kept []int) (c pg.Changes, joining *book, err error) {
	p.book.release(slices.Concat(mine, kept))
	seen := p.book.seen
	if beside := p.loads.beside; beside != nil {
		beside.release(mine)
		switch {
		case !p.loads.ready(p.book, mine):
		case p.loads.void:
			joining, seen = beside, beside.seen
		case beside.generation == p.book.generation:
			joining, seen = beside, seen.With(beside.seen)
		default:
			p.loads.beside = nil
		}
	}
	c, err = p.store.Changes(ctx, seen.Partitions, seen)
	if err == nil && c.Reload && joining != nil { // it has come too late to be followed
		p.loads.beside = nil
		return p.follow(ctx, mine, kept)
	}
	return c, joining, err
}

// join takes over what was loaded beside; the changes since have to be applied next.
func (p *Planner) join(joining *book) {
	switch {
	case joining == nil:
		return
	case p.loads.void:
		p.replace(joining)
	default:
		p.book.adopt(joining)
	}
	p.loads.beside, p.loads.void = nil, false
}
