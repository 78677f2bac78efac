package preflight

import (
	"context"
	"fmt"

	"perpkeeper/pkg/job"
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
		if read, err = r.State.Look(ctx, keysOf(jobs...)); err != nil {
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
