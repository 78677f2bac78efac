package planner

import (
	"context"
	"maps"
	"slices"
	"time"

	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/risk/liquidation"
)

const (
	// sliceTime is about how long a sweep judges before everything else has its turn.
	sliceTime = 10 * time.Millisecond
	// A slice has as many positions as are judged in that time, within these bounds.
	leastSlice, largestSlice = 256, 16_384
)

// sweeping is a sweep that is under way.
type sweeping struct {
	round  *liquidation.Round // nil while there is none
	swept  liquidation.Swept
	failed bool
	size   int  // of the next slice
	turn   bool // it has had the last of the slices that it shares with looks at markets
}

func (s *sweeping) on() bool { return s.round != nil }

// sweep judges every position exactly, as the proof that the index misses none, and publishes every live job again.
func (p *Planner) sweep(ctx context.Context) error {
	p.beginSweep()
	for p.sweeping.on() {
		if err := p.sweepSlice(ctx); err != nil {
			return err
		}
	}
	return nil
}

// beginSweep begins a sweep, unless one is under way or there is no state.
func (p *Planner) beginSweep() {
	if p.sweeping.on() || p.book.block.Hash.IsZero() {
		return
	}
	var indexes []*liquidation.Index
	for _, partition := range slices.Sorted(maps.Keys(p.book.shards)) {
		indexes = append(indexes, p.book.shards[partition].index)
	}
	p.sweeping = sweeping{round: liquidation.NewRound(indexes, p.risky), size: leastSlice}
}

// sweepSlice judges some of the positions, by the prices and the state of now.
func (p *Planner) sweepSlice(ctx context.Context) error {
	s := &p.sweeping
	if p.book.block.Hash.IsZero() { // the state was halted meanwhile
		s.round = nil
		return nil
	}
	began := time.Now()
	m := p.moment()
	found, left, failures := s.round.Judge(ctx, m.View(), p.cfg.Liquidation.Workers, s.size)
	if ctx.Err() != nil {
		s.round = nil
		return ctx.Err()
	}
	if failures != nil {
		s.failed = true
		p.note(failures)
	}
	for _, shard := range p.book.shards {
		for _, missed := range shard.index.Missed(found.Liquidatable, m.View()) {
			p.metrics.missed.Inc()
			p.log.Error().Stringer("position", missed.Position.PositionKey).Uint64("block", m.Block.Number).
				Msg("the index missed a liquidatable position: it was found by the sweep alone")
		}
	}
	s.swept.Add(found)
	s.timed(time.Since(began))
	if left {
		return nil
	}
	return p.endSweep(ctx, m)
}

// timed makes the next slice larger or smaller by how long one took.
func (s *sweeping) timed(took time.Duration) {
	switch {
	case took > sliceTime:
		s.size = max(s.size/2, leastSlice)
	case took < sliceTime/2:
		s.size = min(2*s.size, largestSlice)
	}
}

// endSweep reports the outcome of a sweep.
func (p *Planner) endSweep(ctx context.Context, m *due.Moment) error {
	s := p.sweeping
	p.sweeping = sweeping{}
	if !s.failed {
		p.noted.clear()
	}
	p.risky = s.swept.Risky
	for _, shard := range p.book.shards {
		shard.swaps.Missed(m, func(o perp.Order) {
			p.metrics.missed.Inc()
			p.log.Error().Stringer("order", o.Key).Uint64("block", m.Block.Number).
				Msg("the index missed a limit swap that is due: it was found by the sweep alone")
		})
	}
	p.metrics.swept(s.swept)
	return p.everything(ctx, true)
}
