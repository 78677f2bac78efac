package txmanager

import (
	"cmp"
	"context"
	"slices"
	"time"

	"perpkeeper/pkg/txmgr/txm"
)

// gather is for how long a task that is ready waits for more urgent ones that are still looked at, so that they get
// their numbers together and in their order.
const gather = 25 * time.Millisecond

// checks are the tasks that are led through the stages, each on its own.
type checks struct {
	// beside is true when tasks may be begun before others are through. Who simulates time has all of them through
	// before anything else happens.
	beside  bool
	queued  <-chan struct{} // something was queued
	running map[int64]*Task // by intent
	passed  []*Task         // through the stages, and not claimed yet
	done    chan step       // what running tasks came to
	begun   uint64          // how many were begun
}

// step is how far a task got, and why no further.
type step struct {
	task    *Task
	stage   string
	verdict Verdict
	err     error
}

// busy counts the tasks that are looked at, or wait for their claim.
func (c *checks) busy() int { return len(c.running) + len(c.passed) }

// ids are the intents of those.
func (c *checks) ids() (ids []int64) {
	for id := range c.running {
		ids = append(ids, id)
	}
	for _, t := range c.passed {
		ids = append(ids, t.Intent.ID)
	}
	return ids
}

// begin leads tasks through the stages, side by side.
func (d *drain) begin(ctx context.Context, heads []txm.Intent) {
	if d.running == nil {
		d.running, d.done = map[int64]*Task{}, make(chan step)
	}
	tasks := make([]*Task, len(heads))
	for i, head := range heads {
		d.begun++
		tasks[i] = &Task{Intent: head, begun: d.begun}
		d.running[head.ID] = tasks[i]
	}
	err := d.read(ctx, tasks)
	for _, t := range tasks {
		go func() {
			if err != nil {
				d.done <- step{task: t, stage: "read", err: err}
				return
			}
			d.done <- d.stage(ctx, t)
		}()
	}
}

func (d *drain) stage(ctx context.Context, t *Task) step {
	for _, s := range d.stages {
		if v, err := s.Run(ctx, t); err != nil || v.Kind != Proceed {
			return step{t, s.Name, v, err}
		}
	}
	return step{task: t}
}

// next waits for what tasks came to, in the order of their urgency. News are true when something else may be begun.
func (d *drain) next(ctx context.Context) (steps []step, news bool) {
	if d.beside {
		var gathered <-chan time.Time
		if len(d.passed) > 0 {
			gathered = time.After(gather - d.clock().Sub(d.passed[0].through))
		}
		select {
		case s := <-d.done:
			steps = append(steps, d.through(s))
		case <-d.queued:
			news = true
		case <-d.heads.Next():
			news = true
		case <-gathered:
		case <-ctx.Done():
		}
	}
	for len(d.running) > 0 {
		if d.beside {
			select {
			case s := <-d.done:
				steps = append(steps, d.through(s))
				continue
			default:
			}
			break
		}
		steps = append(steps, d.through(<-d.done))
	}
	slices.SortFunc(steps, func(a, b step) int { return before(a.task, b.task) })
	return steps, news
}

// before orders tasks by their lanes, and those of one lane as they were begun, the most urgent first.
func before(a, b *Task) int {
	if la, lb := a.Job().Kind.Lane(), b.Job().Kind.Lane(); la != lb {
		if txm.Above(la, lb) {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.begun, b.begun)
}

func (d *drain) through(s step) step {
	delete(d.running, s.task.Intent.ID)
	s.task.through = d.clock()
	return s
}

// claimable takes the tasks that are to be claimed now, in their order: nothing more urgent is still looked at, or
// they have waited for it for long enough.
func (d *drain) claimable() (tasks []*Task) {
	first := func(t *Task) bool {
		for _, r := range d.running {
			if before(r, t) < 0 {
				return false
			}
		}
		return true
	}
	now := d.clock()
	slices.SortFunc(d.passed, before)
	d.passed = slices.DeleteFunc(d.passed, func(t *Task) bool {
		ready := now.Sub(t.through) >= gather || first(t)
		if ready {
			tasks = append(tasks, t)
		}
		return ready
	})
	return tasks
}

// settle waits for all that is still looked at, and forgets it: it is queued as before.
func (d *drain) settle() {
	for len(d.running) > 0 {
		d.through(<-d.done)
	}
	d.passed = nil
}
