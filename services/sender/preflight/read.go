package preflight

import (
	"context"
	"fmt"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txmanager"
)

// looker looks up rows, and how far the state is, as of one instant.
type looker interface {
	Look(ctx context.Context, k pg.Keys) (pg.Rows, error)
}

// Read looks up how far the state is and all rows that the jobs of some tasks name, for the gate and the checker: once
// for a batch, as of one instant, a moment before the first stage.
func (r *Checker) Read(ctx context.Context, tasks []*txmanager.Task) error {
	var jobs []job.Job
	for _, t := range tasks {
		jobs = append(jobs, t.Job())
	}
	read, err := r.State.Look(ctx, keysOf(jobs...))
	if err != nil {
		return fmt.Errorf("reading the state for %d tasks: %w", len(tasks), err)
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
		all.Parameters = append(all.Parameters, k.Parameters...)
	}
	return all
}

// readFor returns what was read for a task before its stages.
func readFor(t *txmanager.Task) (read pg.Rows, is bool) {
	read, is = t.Read.(pg.Rows)
	return read, is
}
