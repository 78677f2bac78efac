package planner

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// again is how long the planner waits after a failed pass before the next.
const again = 500 * time.Millisecond

// plan makes one pass after the other: at every change of state, every price tick, every change of shards, and at every sweep.
func (p *Planner) plan(ctx context.Context, changes <-chan struct{}) error {
	sweep := time.NewTicker(p.cfg.Planner.SweepInterval)
	defer sweep.Stop()
	retryPass := time.NewTimer(0)
	defer retryPass.Stop()
	var w world
	for {
		reload, all := true, false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.quotes.changed:
			reload = false
		case <-sweep.C:
			all = true
		case <-changes:
		case <-p.shards.changed:
		case <-retryPass.C:
		}
		if err := p.pass(ctx, &w, reload, all); err != nil && ctx.Err() == nil {
			p.log.Warn().Err(err).Msg("planning failed, trying again")
			retryPass.Reset(again)
		}
	}
}

// pass finds the live jobs and publishes what is new, or all of them.
func (p *Planner) pass(ctx context.Context, w *world, reload, all bool) error {
	if reload {
		if err := p.reload(ctx, w); err != nil {
			return err
		}
	}
	if w.block.Hash.IsZero() {
		return nil
	}
	began := time.Now()
	w.reports = p.quotes.fresh(w.block.TimeMs - min(w.block.TimeMs, uint64(p.cfg.Planner.PriceMaxAge.Milliseconds())))
	jobs, failures := p.finder.find(ctx, *w)
	p.note(failures)
	p.metrics.passed(*w, jobs, time.Since(began))
	return p.announce(ctx, p.live.update(jobs, all))
}

// reload takes a new snapshot. While the partitions stand at different blocks the last level one stays: verdicts are given on one block, never
// on a mixture.
func (p *Planner) reload(ctx context.Context, w *world) error {
	s, err := p.store.Snapshot(ctx, p.shards.mine())
	if err != nil {
		p.stateReady.Fail(err.Error())
		return err
	}
	p.metrics.skew.Set(float64(s.Skew()))
	if s.Halted != "" {
		p.stateReady.Fail("halted: " + s.Halted)
		*w = world{} // no verdict stands until the operator has looked
		return nil
	}
	if !s.Level() {
		if w.block.Hash.IsZero() {
			p.stateReady.Fail("no block that all partitions have applied yet (is statevm running?)")
		}
		return nil
	}
	*w = worldOf(s)
	p.stateReady.OK()
	return nil
}

func worldOf(s pg.Snapshot) world {
	rows := make(rowIndex, len(s.Markets)+len(s.Values)+len(s.Parameters))
	add(rows, s.Markets)
	add(rows, s.Values)
	add(rows, s.Parameters)
	return world{
		block: s.Watermark.BlockRef, generation: uint32(s.Generation), rows: rows, positions: s.Positions, orders: s.Orders, requests: s.Requests,
	}
}

// rowIndex holds the rows of a snapshot that belong to everybody.
type rowIndex map[perp.RowKey]perp.Row

// Get implements [perp.Rows].
func (x rowIndex) Get(k perp.RowKey) perp.Row { return x[k] }

func add[R perp.Row](x rowIndex, rows []R) {
	for _, r := range rows {
		x[r.RowKey()] = r
	}
}

// announce publishes jobs and says so, one line a job that is not routine.
func (p *Planner) announce(ctx context.Context, jobs []job.Job) error {
	if err := p.publisher.publish(ctx, jobs); err != nil {
		p.live.forget()
		p.jobsReady.Fail(err.Error())
		return err
	}
	p.jobsReady.OK()
	for _, j := range jobs {
		p.metrics.published.WithLabelValues(string(j.Kind)).Inc()
		p.log.Debug().Str("job", j.ID).Str("account", j.Account.Hex()).Uint64("block", j.Evidence.Block.Number).Str("why", j.Evidence.Reason).Msg("job published")
	}
	return nil
}

// note tells of positions that could not be judged, once as long as the same ones fail.
func (p *Planner) note(failures error) {
	text := ""
	if failures != nil {
		text = failures.Error()
	}
	if text != p.noted && text != "" {
		p.log.Error().Err(fmt.Errorf("some positions could not be judged: %w", failures)).Msg("positions left out")
	}
	p.noted = text
}
