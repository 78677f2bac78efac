package planner

import (
	"context"
	"maps"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/due"
)

// elsewhere knows the most profitable positions that other planners have, of the sides of markets that are to be
// deleveraged: of whom to take from is a question about the whole side. They are read from the database when they are
// wanted, beside the plan, and again while they are wanted; no more often than four times as long as reading takes.
type elsewhere struct {
	store   Store
	known   map[side]gainers
	wanted  map[side]perp.Uint // with the present price
	busy    bool
	rest    time.Time // no question before
	arrived chan gainersOf
}

// side is one of a market.
type side struct {
	market chain.Address
	isLong bool
}

type gainers struct {
	positions []perp.Position
	at        time.Time
}

type gainersOf struct {
	side
	gainers
	took time.Duration
	err  error
}

const (
	// elsewhereMost is how many positions are asked for: of a side more are seldom needed at once, and what is needed
	// after these is chosen when they are done.
	elsewhereMost = 200
	// elsewhereAge is after how long an answer does not count any more.
	elsewhereAge = time.Minute
	// elsewhereRest is how long an answer is good enough.
	elsewhereRest = 2 * time.Second
)

func newElsewhere(store Store) *elsewhere {
	return &elsewhere{store: store, known: map[side]gainers{}, wanted: map[side]perp.Uint{},
		arrived: make(chan gainersOf, 1)}
}

// of returns how to ask for those of a side. A book that has all partitions has nobody else to ask.
func (e *elsewhere) of(b *book, s side, price perp.Uint) due.Elsewhere {
	if len(b.shards) >= b.partitions {
		return nil
	}
	return func() ([]perp.Position, bool) {
		e.wanted[s] = price
		found, known := e.known[s]
		others := slices.DeleteFunc(slices.Clone(found.positions), func(p perp.Position) bool {
			_, own := b.position(p.PositionKey) // a partition has come since
			return own
		})
		return others, known && time.Since(found.at) < elsewhereAge
	}
}

// ask begins to read what is wanted, one side after the other.
func (e *elsewhere) ask(ctx context.Context, b *book, spawn func(func())) {
	if e.busy || len(e.wanted) == 0 || time.Now().Before(e.rest) {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(e.wanted)),
		func(x, y side) int { return e.known[x].at.Compare(e.known[y].at) })
	question := pg.Gainers{Market: oldest.market, IsLong: oldest.isLong, Price: e.wanted[oldest],
		Except: slices.Collect(maps.Keys(b.shards)), Most: elsewhereMost}
	e.wanted, e.busy = map[side]perp.Uint{}, true
	spawn(func() {
		began := time.Now()
		found, err := e.store.MostProfitable(ctx, question)
		e.arrived <- gainersOf{oldest, gainers{found, time.Now()}, time.Since(began), err}
	})
}

// take takes an answer in.
func (e *elsewhere) take(a gainersOf) error {
	e.busy, e.rest = false, time.Now().Add(max(elsewhereRest, 4*a.took))
	if a.err == nil {
		e.known[a.side] = a.gainers
	}
	return a.err
}
