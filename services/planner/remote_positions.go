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

// remotePositions knows the most profitable positions that other planners have, of the sides of markets that are to be
// deleveraged: of whom to take from is a question about the whole side. They are read from the database when they are
// wanted, beside the plan, and again while they are wanted; no more often than four times as long as reading takes.
type remotePositions struct {
	store   Store
	known   map[side]gainers
	wanted  map[side]chain.Uint // with the present price
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
	// remoteLimit is how many positions are asked for: of a side more are seldom needed at once, and what is needed
	// after these is chosen when they are done.
	remoteLimit = 200
	// remoteMaxAge is after how long an answer does not count any more.
	remoteMaxAge = time.Minute
	// remoteInterval is how long an answer is good enough.
	remoteInterval = 2 * time.Second
)

func newRemotePositions(store Store) *remotePositions {
	return &remotePositions{store: store, known: map[side]gainers{}, wanted: map[side]chain.Uint{},
		arrived: make(chan gainersOf, 1)}
}

// of returns how to ask for those of a side. A book that has all partitions has nobody else to ask.
func (r *remotePositions) of(b *book, s side, price chain.Uint) due.RemotePositions {
	if len(b.shards) >= b.partitions {
		return nil
	}
	return func() ([]perp.Position, bool) {
		r.wanted[s] = price
		found, known := r.known[s]
		others := slices.DeleteFunc(slices.Clone(found.positions), func(p perp.Position) bool {
			_, own := b.position(p.PositionKey) // a partition has come since
			return own
		})
		return others, known && time.Since(found.at) < remoteMaxAge
	}
}

// ask begins to read what is wanted, one side after the other.
func (r *remotePositions) ask(ctx context.Context, b *book, spawn func(func())) {
	if r.busy || len(r.wanted) == 0 || time.Now().Before(r.rest) {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(r.wanted)),
		func(x, y side) int { return r.known[x].at.Compare(r.known[y].at) })
	question := pg.Gainers{Market: oldest.market, IsLong: oldest.isLong, Price: r.wanted[oldest],
		Except: slices.Collect(maps.Keys(b.shards)), Most: remoteLimit}
	r.wanted, r.busy = map[side]chain.Uint{}, true
	spawn(func() {
		began := time.Now()
		found, err := r.store.MostProfitable(ctx, question)
		r.arrived <- gainersOf{oldest, gainers{found, time.Now()}, time.Since(began), err}
	})
}

// receive takes an answer in.
func (r *remotePositions) receive(a gainersOf) error {
	r.busy, r.rest = false, time.Now().Add(max(remoteInterval, 4*a.took))
	if a.err == nil {
		r.known[a.side] = a.gainers
	}
	return a.err
}
