package planner

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
)

// finder turns what waits in markets into jobs.
type finder struct {
	book       *book
	dueTimes   *dueTimes
	triggers   *triggerReports
	spacing    *spacing
	live       *live
	signers    job.Signers
	out        atomic.Pointer[[]chain.Address] // signers that can sign nothing now; nil for none
	unexecuted unexecuted
	others     *remotePositions
	sides      map[sideMoment]map[string]bool // what deleveraging was due in the past, by job id; of one pass
}

// sideMoment is a side of a market at a moment.
type sideMoment struct {
	moment *due.Moment
	market chain.Address
	isLong bool
}

// find returns the live jobs of a market at a moment, and beside them the failures that left out single positions. When
// ctx ends some are missing.
func (f *finder) find(ctx context.Context, market chain.Address, m *due.Moment) (jobs []job.Job, failures error) {
	jobs, failures = f.liquidations(ctx, market, m)
	jobs, failed := f.deleveragings(jobs, market, m)
	failures = errors.Join(failures, failed)
	for _, s := range f.book.shards {
		jobs = f.waiting(jobs, s, market, m)
	}
	return jobs, failures
}

// waiting are the jobs of a shard's orders and requests in a market.
func (f *finder) waiting(jobs []job.Job, s *shard, market chain.Address, m *due.Moment) []job.Job {
	waiting, known := s.markets[market]
	if !known {
		return jobs
	}
	if quote, reported := f.indexQuote(market, m); reported {
		waiting.triggers.Reached(quote.Price, func(o perp.Order) { jobs = f.order(jobs, m, o) })
	}
	if market == noMarket {
		s.swaps.Reached(m, func(o perp.Order) { jobs = f.order(jobs, m, o) })
	}
	for _, o := range waiting.prompt {
		jobs = f.order(jobs, m, o)
	}
	for _, r := range waiting.requests {
		jobs = f.take(jobs, m, m.Request(r), func(then *due.Moment) bool { return then.Request(r).Due })
	}
	return jobs
}

func (f *finder) indexQuote(market chain.Address, m *due.Moment) (due.Quote, bool) {
	row, known := m.Market(market)
	quote, reported := m.Quotes[row.IndexToken]
	return quote, known && reported
}

func (f *finder) order(jobs []job.Job, m *due.Moment, o perp.Order) []job.Job {
	position, _ := f.book.position(o.PositionKey())
	return f.take(jobs, m, m.Order(o, position), func(then *due.Moment) bool { return then.Order(o, position).Due })
}

// liquidations asks the index. Where liquidation.spacing is set, it lets one new large close of a market through for
// each block.
func (f *finder) liquidations(ctx context.Context, market chain.Address, m *due.Moment) (jobs []job.Job,
	failures error) {
	if _, reported := f.indexQuote(market, m); !reported {
		return nil, nil // a market without fresh reports cannot be judged, and says so as a metric of the feed
	}
	candidates, failures := f.book.candidates(market, m.View())
	row, _ := m.Market(market)
	jobs = slices.Grow(jobs, len(candidates))
	for _, c := range candidates {
		if ctx.Err() != nil { // looking up since when thousands have been due takes seconds
			return nil, ctx.Err()
		}
		p := c.Position
		d := m.Judged(p, c.Verdict)
		if f.spacing.on() && d.Due && !f.live.has(d.Job) &&
			f.spacing.holds(d.Job, p.SizeInUsd, perp.SideInterest(m.Rows, row, p.IsLong), m.Block.Number) {
			continue
		}
		jobs = f.take(jobs, m, d, func(then *due.Moment) bool { return then.Liquidatable(p) })
	}
	return jobs, failures
}

// deleveragings are the jobs of both sides of a market.
func (f *finder) deleveragings(jobs []job.Job, market chain.Address, m *due.Moment) ([]job.Job, error) {
	row, known := m.Market(market)
	if _, reported := f.indexQuote(market, m); !m.Rules.AdlRole || !known || !reported {
		return jobs, nil
	}
	var failures error
	for _, isLong := range []bool{true, false} {
		decisions, err := m.Deleverage(row, isLong, f.book.positions(market), f.remotePositions(row, isLong, m))
		failures = errors.Join(failures, err)
		for _, d := range decisions {
			jobs = f.take(jobs, m, d, func(then *due.Moment) bool { return f.deleveraged(then, row, isLong, d.Job.ID) })
		}
	}
	return jobs, failures
}

// remotePositions is what other planners have of a side.
func (f *finder) remotePositions(market perp.Market, isLong bool, m *due.Moment) due.RemotePositions {
	return f.others.of(f.book, side{market.MarketToken, isLong}, m.Quotes[market.IndexToken].Price.Max)
}

// deleveraged reports whether a job was due at another moment. All positions of the side have a say in each, so a
// moment is judged once for all its jobs.
func (f *finder) deleveraged(then *due.Moment, market perp.Market, isLong bool, id string) bool {
	key := sideMoment{then, market.MarketToken, isLong}
	was, known := f.sides[key]
	if !known {
		was = map[string]bool{}
		// whoever cannot be judged was not due
		decisions, _ := then.Deleverage(market, isLong, f.book.positions(market.MarketToken),
			f.remotePositions(market, isLong, then))
		for _, d := range decisions {
			was[d.Job.ID] = true
		}
		f.sides[key] = was
	}
	return was[id]
}

// take adds the job of a decision, if it is due.
func (f *finder) take(jobs []job.Job, m *due.Moment, d due.Decision, was func(*due.Moment) bool) []job.Job {
	if d.Expired {
		f.unexecuted.see(d.Job, m.Block.TimeMs)
		d = m.Cancel(d)
	}
	if !d.Due {
		return jobs
	}
	if d.PriceBorn() {
		var again bool
		if d.Job.DueSinceMs, again = f.dueTimes.of(d, m, was); again {
			f.unexecuted.waited(d.Job)
		}
	}
	var out []chain.Address
	if now := f.out.Load(); now != nil {
		out = *now
	}
	d.Job.Signer = f.signers.Route(d.Job.Kind, d.Job.Account, out...)
	return append(jobs, d.Job)
}

// everywhere returns all markets in which anything waits or is due.
func (f *finder) everywhere() map[chain.Address]bool {
	markets := f.book.everything()
	for m := range f.live.markets {
		markets[m] = true // what was due there may be another planner's now
	}
	return markets
}

// findAll finds the jobs of several markets. It returns those that are new. When ctx ends it leaves the market that it
// is at as it was, and the others after it.
func (f *finder) findAll(ctx context.Context, markets iter.Seq[chain.Address], m *due.Moment) (fresh []job.Job,
	failures error) {
	f.dueTimes.begin()
	f.triggers.begin()
	f.sides = map[sideMoment]map[string]bool{}
	for market := range markets {
		if row, known := m.Market(market); known {
			f.triggers.judge(row, m)
		}
		jobs, failed := f.find(ctx, market, m)
		if ctx.Err() != nil {
			break
		}
		failures = errors.Join(failures, failed)
		began, ended := f.live.update(market, jobs)
		fresh = append(fresh, began...)
		for _, id := range ended {
			f.dueTimes.ended(id)
		}
	}
	return fresh, failures
}
