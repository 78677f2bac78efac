package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/risk/due"
)

// again is how long the planner waits after a failed pass before the next.
const again = 500 * time.Millisecond

// plan looks at the markets that a price tick reaches; at all of them at every change of state and of shards; and at
// every sweep, which judges every position exactly and publishes every live job again. All of it is done in slices that
// everything else comes between.
func (p *Planner) plan(ctx context.Context, changes <-chan struct{}) error {
	sweep := newSweepTimer(p.cfg.Planner.SweepInterval)
	defer sweep.Stop()
	retryPass := time.NewTimer(0)
	defer retryPass.Stop()
	var loads sync.WaitGroup
	defer loads.Wait()
	p.loads.spawn, p.work.slice = loads.Go, sliceTime
	always := make(chan struct{})
	close(always)
	for {
		var err error
		var slice <-chan struct{}
		if p.sweeping.on() || p.work.on() {
			slice = always
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.quotes.changed:
			err = p.tick(ctx)
		case <-sweep.C:
			p.beginSweep()
			sweep.start(p.mode.SweepInterval(p.cfg.Planner.SweepInterval))
		case <-changes:
			err = p.reload(ctx)
		case <-p.shards.changed:
			err = p.reload(ctx)
		case <-slice:
			err = p.slice(ctx)
		case a := <-p.loads.arrived:
			err = p.arrive(ctx, a)
		case a := <-p.finder.others.arrived:
			if err = p.finder.others.receive(a); err == nil {
				err = p.everything(ctx, false)
			}
		case <-retryPass.C:
			err = p.reload(ctx)
		}
		p.finder.others.ask(ctx, p.book, p.loads.spawn)
		sweep.hasten(p.mode.SweepInterval(p.cfg.Planner.SweepInterval))
		if err != nil && ctx.Err() == nil {
			p.log.Warn().Err(err).Msg("planning failed, trying again")
			retryPass.Reset(again)
		}
	}
}

// sweepTimer fires when the next sweep is due.
type sweepTimer struct {
	*time.Timer
	interval time.Duration // that it was started with
}

func newSweepTimer(interval time.Duration) *sweepTimer {
	return &sweepTimer{time.NewTimer(interval), interval}
}

func (s *sweepTimer) start(interval time.Duration) {
	s.interval = interval
	s.Reset(interval)
}

// hasten has the next sweep come within a shorter interval from now: markets that have become volatile do not wait out
// the calm one (LIQ-1).
func (s *sweepTimer) hasten(interval time.Duration) {
	if interval < s.interval {
		s.start(interval)
	}
}

// moment is now: the state, and the newest reports that are fresh by its time.
func (p *Planner) moment() *due.Moment { return p.momentOf(p.book) }

func (p *Planner) momentOf(b *book) *due.Moment {
	m := &due.Moment{Block: b.block, Generation: b.generation, Rows: b.rows, Glvs: b.glvs, Rules: p.rules}
	return m.Quoted(maps.Keys(b.byToken), due.PriceMaxAge, p.quotes.latest)
}

// tick looks at the markets whose prices have moved (LIQ-2).
func (p *Planner) tick(ctx context.Context) error {
	tokens, arrived := p.quotes.take()
	if p.book.block.Hash.IsZero() || len(tokens) == 0 { // the pass before has taken what this signal was for
		return nil
	}
	p.work.move(p.book.reached(tokens), arrived)
	return p.look(ctx)
}

// slice goes on with the markets that are still to be looked at, and with the sweep, by turns.
func (p *Planner) slice(ctx context.Context) error {
	if p.sweeping.turn = p.sweeping.on() && (!p.sweeping.turn || !p.work.on()); p.sweeping.turn {
		return p.sweepSlice(ctx)
	}
	return p.look(ctx)
}

// look looks at markets of the worklist, by the prices and the state of now, until a slice of time is over, and
// publishes what is new.
func (p *Planner) look(ctx context.Context) error {
	if p.book.block.Hash.IsZero() {
		p.work.clear()
		return nil
	}
	began := time.Now()
	m := p.moment()
	p.observe(m)
	var looked looked
	fresh, failures := p.finder.findAll(ctx, p.work.next(began, &looked), m)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, arrived := range looked.waited {
		p.metrics.ticked(time.Since(arrived))
	}
	p.note(failures)
	ended, after := p.work.end()
	if ended {
		p.metrics.passed(p.book, p.live.count())
		p.metrics.unpriced.Set(float64(p.book.unpriced(p.quotes.latest)))
	}
	if ended || p.metrics.overdue.stale() {
		p.metrics.overdue.show(p.finder.oldest(m))
	}
	if after != nil {
		p.work.begin(p.finder.everywhere(), *after)
	}
	if err := p.announce(ctx, fresh, true); err != nil || len(looked.repeat) == 0 {
		return err
	}
	return p.announce(ctx, p.live.of(slices.Values(looked.repeat)), false)
}

// reload takes in what became of the state, as of the highest block that all partitions have applied, and looks at
// every market. Nothing is looked at anew while that block is the same: each partition's commit is a change of its own.
// Partitions that are new to the planner are loaded beside; until one has come, the planner plans without it, and where
// all are void (at a switch of generation) with what it had.
func (p *Planner) reload(ctx context.Context) error {
	mine, kept := p.shards.mine()
	before := len(p.book.shards)
	c, joining, err := p.follow(ctx, mine, kept)
	keys := named(c.Orders.Changed, cmp.Or(joining, p.book).uiFees)
	fees, failed := p.lookUp(ctx, keys)
	if err = errors.Join(err, failed); err != nil {
		p.stateReady.Fail(err.Error())
		return err
	}
	p.metrics.skew.Set(float64(c.Skew()))
	switch {
	case c.Halted != "":
		p.stateReady.Fail("the state is halted: " + c.Halted)
		p.replace(newBook(p.book.armed)) // nothing more is decided by what may not be so
		p.loads.beside = nil
		return nil
	case !c.HasView():
		if p.book.block.Hash.IsZero() {
			p.stateReady.Fail("no block that all partitions have applied yet (is statevm running?)")
		}
		return nil
	case c.Reload:
		p.loads.void = true
		p.load(ctx, mine)
		return nil
	}
	p.stateReady.OK()
	unchanged := c.Unchanged(p.book.seen) && joining == nil && len(p.book.shards) == before
	p.join(joining)
	p.loads.void = false
	p.load(ctx, mine)
	if unchanged && !p.live.lost {
		return nil
	}
	p.book.apply(c)
	p.book.learn(keys, fees)
	return p.everything(ctx, false)
}

// replace goes on with another state. Jobs that were due by the one before are forgotten, with their due times and with
// what was under way: they must not be published again, even where it is unknown whether they arrived, and those that
// are still due are published with the evidence of the new one.
func (p *Planner) replace(b *book) {
	*p.book = *b
	p.live.clear()
	p.finder.dueTimes.clear()
	p.work.clear()
	p.sweeping = sweeping{}
}

// everything begins a pass over all markets, which publishes what is new or, to repeat it, all that is due.
func (p *Planner) everything(ctx context.Context, repeat bool) error {
	p.work.begin(p.finder.everywhere(), repeat)
	return p.look(ctx)
}

// observe follows the mark prices, whose volatility decides how often to sweep (LIQ-1).
func (p *Planner) observe(m *due.Moment) {
	for market := range p.book.indexed() {
		if quote, reported := p.finder.indexQuote(market, m); reported {
			p.modes.Observe(market, quote.Min, quote.TimeMs)
		}
	}
	if mode := p.modes.Mode(m.Seconds() * 1000); mode != p.mode {
		p.log.Info().Stringer("from", p.mode).Stringer("to", mode).Msg("the markets have another mode")
		p.mode = mode
		p.metrics.mode.Set(float64(mode))
	}
}

// announce publishes jobs, most urgent first. After a failure it is unknown which arrived, and all live ones go out
// again.
func (p *Planner) announce(ctx context.Context, jobs []job.Job, fresh bool) error {
	if p.live.lost {
		jobs, fresh = p.live.all(), false
	}
	p.live.order(jobs)
	if err := p.publish(ctx, jobs); err != nil {
		p.live.lost = true
		p.jobsReady.Fail(err.Error())
		return err
	}
	p.live.lost = false
	p.jobsReady.OK()
	for _, j := range jobs {
		if report, made := p.finder.triggers.report(j.Market); fresh && made && j.Kind == job.Liquidation {
			p.metrics.madeDue(report)
		}
		p.log.Debug().Str("job", j.ID).Str("account", j.Account.Hex()).Uint64("block", j.Evidence.Block.Number).
			Str("why", j.Evidence.Reason).Msg("job published")
	}
	return nil
}

// note logs positions that could not be judged.
func (p *Planner) note(failures error) {
	if unlogged, count := p.noted.unlogged(failures); count > 0 {
		p.log.Error().Err(fmt.Errorf("some positions could not be judged: %s", unlogged)).Int("new", count).
			Msg("positions left out")
	}
}
