package preflight

import (
	"context"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmanager"
)

// looker looks up rows, and how far the state is, as of one instant.
type looker interface {
	Look(ctx context.Context, k pg.Keys) (pg.Rows, error)
}

// Read looks up how far the state is and all rows that the jobs of some tasks name, for the gate and the checker: once
// for a batch, as of one instant, a moment before the first stage. The rows of a single task may have been read early.
func (r *Checker) Read(ctx context.Context, tasks []*txmanager.Task) error {
	var jobs []job.Job
	for _, t := range tasks {
		jobs = append(jobs, t.Job())
	}
	var read pg.Rows
	known := false
	if len(jobs) == 1 {
		read, known = r.early.rows(ctx, jobs[0].ID)
	}
	if !known {
		var err error
		if read, err = r.state.Look(ctx, keysOf(jobs...)); err != nil {
			return fmt.Errorf("reading the state for %d tasks: %w", len(tasks), err)
		}
	}
	for _, t := range tasks {
		t.Read = read
	}
	return nil
}

// keysOf are those of all rows that some jobs name.
func keysOf(jobs ...job.Job) (all pg.Keys) {
	for _, j := range jobs {
		rule, known := ruleOf(j.Kind)
		if !known {
			continue // it is refused by its own check
		}
		k := rule.keys(j)
		all.Positions, all.Orders = append(all.Positions, k.Positions...), append(all.Orders, k.Orders...)
		all.Requests, all.Values = append(all.Requests, k.Requests...), append(all.Values, k.Values...)
	}
	return all
}

// readFor returns what was read for a task before its stages.
func readFor(t *txmanager.Task) (read pg.Rows, is bool) {
	read, is = t.Read.(pg.Rows)
	return read, is
}

// together answers from rows that were read together, and asks the state for others.
type together struct {
	rows
	read pg.Rows
}

// Position answers as [pg.DB.Position] does.
func (r together) Position(ctx context.Context, key chain.Hash) (pg.Found[perp.Position], error) {
	return orAsk(ctx, r.read.Positions, key, r.rows.Position)
}

// Closing answers as [pg.DB.Closing] does.
func (r together) Closing(ctx context.Context, key chain.Hash) (pg.Found[perp.Position], []perp.Order, error) {
	if found, asked := r.read.Positions[key]; asked {
		return found, slices.Clone(r.read.Ending[key]), nil
	}
	return r.rows.Closing(ctx, key)
}

// Order answers as [pg.DB.Order] does.
func (r together) Order(ctx context.Context, key chain.Hash) (pg.Found[perp.Order], error) {
	return orAsk(ctx, r.read.Orders, key, r.rows.Order)
}

// Request answers as [pg.DB.Request] does.
func (r together) Request(ctx context.Context, key chain.Hash) (pg.Found[perp.Request], error) {
	return orAsk(ctx, r.read.Requests, key, r.rows.Request)
}

// MarketValue answers as [pg.DB.MarketValue] does.
func (r together) MarketValue(ctx context.Context, key chain.Hash) (pg.Found[perp.MarketValue], error) {
	return orAsk(ctx, r.read.Values, key, r.rows.MarketValue)
}

func orAsk[R perp.Row](ctx context.Context, read map[chain.Hash]pg.Found[R], key chain.Hash,
	ask func(context.Context, chain.Hash) (pg.Found[R], error)) (pg.Found[R], error) {
	if found, asked := read[key]; asked {
		return found, nil
	}
	return ask(ctx, key)
}
