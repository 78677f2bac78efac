package txmanager

import (
	"context"
	"errors"
	"sync"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// drain leads a signer's queued intents through the stages, the most urgent first (NON-9). Several are looked at side
// by side, claimed in one statement and broadcast together; the numbers they get are in the order of their urgency.
type drain struct {
	duty
	// read looks up what the stages of tasks need.
	read   func(ctx context.Context, tasks []*Task) error
	stages []Stage
	dispatch
	gate func(reason string) // told why nothing can be sent; empty when something could
	places
	upkeep
	passedOver
	endings
}

// dispatch is what happens to tasks that got through the stages.
type dispatch struct {
	// claim gives tasks their nonces, all or none, and launch broadcasts them.
	claim  func(ctx context.Context, tasks []*Task) (Verdict, error)
	launch func(ctx context.Context, tasks []*Task)
	// launched is what went wrong with what was launched before.
	launched func() error
}

// pass takes tasks until there is none left to take, or the gate is closed. What is to be counted is counted
// afterwards, while no job waits for it. Until then the budget knows less than it may spend rather than more: what was
// taken from it counts at once. The first pass of a tenure, and one after a failure, cannot rely on that and counts
// first.
func (d *drain) pass(ctx context.Context) error {
	if !d.counted {
		if err := d.tally(ctx); err != nil {
			return err
		}
	}
	d.counted = false
	if err := d.launched(); err != nil {
		return err
	}
	took, err := d.empty(ctx)
	if err != nil {
		return err
	}
	if d.tallyWaits(took) {
		d.counted = true // what was taken from the budget since counts there
		return nil
	}
	return d.tally(ctx)
}

// empty takes what can be taken of the queue, and reports whether there was anything.
func (d *drain) empty(ctx context.Context) (took bool, err error) {
	for ; ctx.Err() == nil; took = true {
		pick, err := d.room(ctx)
		if err != nil || pick.Limit == 0 {
			return took, err
		}
		pick.Except, pick.Liquidations = d.sleeping(), d.limits.Flights().Liquidations
		heads, err := d.store.Heads(ctx, d.signer, pick)
		if err != nil {
			return took, err
		}
		if len(heads) == 0 {
			return took, errors.Join(d.explain(ctx, took), d.tidy(ctx))
		}
		d.ready(false)
		if err := d.reconcile(ctx); err != nil {
			return took, err
		}
		open, err := d.take(ctx, heads)
		if d.wait(heads, open); err != nil || !open {
			return true, err
		}
	}
	return took, nil
}

// explain reports why nothing of a queue is taken, if that is not the order of things.
func (d *drain) explain(ctx context.Context, took bool) error {
	if took {
		return nil
	}
	if len(d.asleep) > 0 { // nothing but these is left
		d.reportReady(len(d.asleep))
		return nil
	}
	depth, err := d.store.Depth(ctx, d.signer)
	if err != nil {
		return err
	}
	if d.reportReady(depth); depth == 0 {
		return nil
	}
	reason, err := d.store.Paused(ctx, d.signer)
	if err == nil && reason != "" {
		d.gate("the signer is paused: " + reason)
	}
	return err
}

// take leads tasks as far as they get. It returns false when no other task would get further.
func (d *drain) take(ctx context.Context, heads []txm.Intent) (open bool, err error) {
	steps := d.preflight(ctx, heads)
	var ready []*Task
	var problems []error
	open = true
	for _, s := range steps {
		switch {
		case s.err != nil:
			d.sleep(s.task.Intent, pause) // whatever it was, others may have better luck meanwhile
			problems = append(problems, s.err)
		case s.verdict.Kind == Onward:
			ready = append(ready, s.task)
		default:
			more, err := d.obey(ctx, s.stage, s.task.Intent, s.verdict)
			open, problems = open && more, append(problems, err)
		}
	}
	if err := errors.Join(problems...); lease.Lost(err) || len(ready) == 0 {
		return open, err
	}
	d.gate("")
	ready, err = d.stillOurs(ctx, ready)
	if problems = append(problems, err); len(ready) == 0 {
		return open, errors.Join(problems...)
	}
	more, err := d.send(ctx, ready)
	return open && more, errors.Join(append(problems, err)...)
}

// stillOurs asks once more whose turn it is, immediately before the claim: the stages may have taken long.
func (d *drain) stillOurs(ctx context.Context, tasks []*Task) (ours []*Task, err error) {
	var problems []error
	for _, t := range tasks {
		v := d.turns.Ask(t.Job()).Verdict
		if v.Kind == Onward {
			ours = append(ours, t)
			continue
		}
		_, err := d.obey(ctx, "turn", t.Intent, v)
		problems = append(problems, err)
	}
	return ours, errors.Join(problems...)
}

// preflight leads tasks through the stages side by side, up to the claim.
func (d *drain) preflight(ctx context.Context, heads []txm.Intent) []step {
	steps, tasks := make([]step, len(heads)), make([]*Task, len(heads))
	for i, head := range heads {
		tasks[i] = &Task{Intent: head}
	}
	if err := d.read(ctx, tasks); err != nil {
		for i, t := range tasks {
			steps[i] = step{task: t, stage: "read", err: err}
		}
		return steps
	}
	var running sync.WaitGroup
	for i, t := range tasks {
		running.Go(func() { steps[i] = d.stage(ctx, t) })
	}
	running.Wait()
	return steps
}

// step is how far a task got, and why no further.
type step struct {
	task    *Task
	stage   string
	verdict Verdict
	err     error
}

func (d *drain) stage(ctx context.Context, t *Task) step {
	for _, s := range d.stages {
		if v, err := s.Run(ctx, t); err != nil || v.Kind != Onward {
			return step{t, s.Name, v, err}
		}
	}
	return step{task: t}
}

// send claims tasks and broadcasts them. A batch that is refused is claimed in two parts, the more urgent first: as
// many as there are places for, or half, until the one that is in the way stands alone and waits, or all places are
// taken.
func (d *drain) send(ctx context.Context, tasks []*Task) (open bool, err error) {
	const claiming = "claim"
	v, err := d.claim(ctx, tasks)
	d.crowded = d.crowded || err == nil && v.Kind == Closed
	switch {
	case err != nil:
		for _, t := range tasks {
			d.sleep(t.Intent, pause)
		}
		return false, err
	case v.Kind == Onward:
		for _, t := range tasks {
			delete(d.yielded, t.Intent.ID)
			d.turns.Taken(t.Job())
		}
		d.launch(ctx, tasks)
		return true, nil
	case len(tasks) == 1:
		return d.obey(ctx, claiming, tasks[0].Intent, v)
	}
	first := len(tasks) / 2
	if v.Kind == Closed {
		switch pick, err := d.room(ctx); {
		case err != nil:
			return false, err
		case pick.Limit == 0:
			return d.obey(ctx, claiming, tasks[0].Intent, v)
		case pick.Limit < len(tasks):
			first = pick.Limit
		}
	}
	if open, err = d.send(ctx, tasks[:first]); err != nil || !open {
		return open, err
	}
	return d.send(ctx, tasks[first:])
}

// obey does what a verdict asks for an intent. It returns false where it holds for every other one too.
func (d *drain) obey(ctx context.Context, stage string, i txm.Intent, v Verdict) (open bool, err error) {
	if v.Kind == Closed {
		d.metrics.waits.WithLabelValues(stage).Inc()
		d.gate(v.Reason)
		return false, nil
	}
	d.gate("")
	if v.Kind == Waiting || v.Kind == Yielding {
		d.metrics.waits.WithLabelValues(stage).Inc()
		if v.Kind == Yielding {
			d.yielded[i.ID] = d.clock()
		}
		if d.waited(i) < d.maxWait {
			d.rested(i, v)
			if v.Gate {
				d.gate(v.Reason)
			}
			d.log.Debug().Str("job", i.Job.ID).Uint32("attempt", i.Attempt).Str("stage", stage).Str("reason", v.Reason).
				Msg("waiting")
			return true, nil
		}
		return true, d.skip(ctx, i, End(job.Expired, "waited too long: "+v.Reason), d.overdue(i))
	}
	return true, d.skip(ctx, i, v, d.rest(i, v.Outcome))
}

// endings is what becomes of tasks that end without a nonce.
type endings struct {
	maxWait time.Duration // for how long a task may wait
	rest    func(i txm.Intent, o job.Outcome) txm.Rest
	ended   func() // called when an intent has ended
}

// overdue is what comes after an attempt that has waited too long. People are notified; but what is most urgent is not
// put off for that, whoever was in the way.
func (e endings) overdue(i txm.Intent) txm.Rest {
	rest := e.rest(i, job.Expired)
	if i.Job.Kind.Lane() == job.LiquidationLane {
		rest.RetryAfterMs = 0
	}
	return rest
}

// skip ends an intent that never got a nonce. One that has moved on meanwhile is somebody else's.
func (d *drain) skip(ctx context.Context, i txm.Intent, v Verdict, rest txm.Rest) error {
	end := txm.Ending{Verdict: txm.Verdict{Outcome: v.Outcome, Reason: v.Reason}, Rest: rest}
	err := d.store.Skip(ctx, d.tenure.Fence(), i.ID, end)
	if txm.Refused(err) != "" {
		return nil
	}
	if err == nil {
		delete(d.yielded, i.ID)
		d.turns.Ended(i.Job.ID, v.Outcome)
		d.ended()
	}
	return err
}
