package txmanager

import (
	"cmp"
	"context"
	"errors"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// drain leads a signer's queued intents through the stages, the most urgent first (NON-9). Several are looked at side
// by side. Those that are ready together are claimed in one statement and broadcast together, and the numbers they get
// are in the order of their urgency.
type drain struct {
	duty
	// read looks up what the stages of tasks need.
	read   func(ctx context.Context, tasks []*Task) error
	stages []Stage
	checks
	dispatch
	blocked func(reason string) // tells readiness why nothing can be sent; empty when something could
	slots
	full bool // there is no slot for anything
	upkeep
	deferred
	endings
}

// dispatch is what happens to tasks that got through the stages.
type dispatch struct {
	// claim gives tasks their nonces, or none of them; and launch broadcasts them.
	claim  func(ctx context.Context, tasks []*Task) (Verdict, error)
	launch func(ctx context.Context, tasks []*Task)
	// launched is what went wrong with what was launched before.
	launched func() error
}

// pass takes tasks until there is none left to take, or nothing can be sent. What is to be counted is counted
// afterwards, while no job waits for it. Until then the budget knows less than it may spend rather than more: what was
// taken from it counts at once. The first pass of a lease term, and one after a failure, cannot rely on that and counts
// first.
func (d *drain) pass(ctx context.Context) error {
	if !d.counted {
		if err := d.account(ctx); err != nil {
			return err
		}
	}
	d.counted = false
	if err := d.launched(); err != nil {
		return err
	}
	took, err := d.claimLoop(ctx)
	if err != nil {
		return err
	}
	if d.accountingWaits(took) {
		d.counted = true // what was taken from the budget since counts there
		return nil
	}
	return d.account(ctx)
}

// claimLoop takes what can be taken of the queue, and reports whether there was anything. It goes on while tasks are
// looked at: what is ready is claimed, what is new is begun, and nobody waits for another one's slow call. What goes
// wrong with a task ends it for no other; it is returned when the rest has had its turn, or after a while.
func (d *drain) claimLoop(ctx context.Context) (took bool, err error) {
	checking, cancel := context.WithCancel(ctx) // what is launched goes on
	defer d.settle()
	defer cancel()
	var problem error
	begun := d.clock()
	for open := true; ctx.Err() == nil; {
		filled := false
		if open = open && (problem == nil || d.clock().Sub(begun) < idle); open {
			if filled, err = d.fill(ctx, checking); err != nil {
				return took, errors.Join(problem, err)
			}
		}
		took = took || filled
		if d.busy() == 0 {
			if !open || d.full {
				return took, problem
			}
			return took, errors.Join(problem, d.explain(ctx, took), d.numbers.housekeeping(ctx))
		}
		steps, news := d.next(ctx)
		more, err := d.process(ctx, steps)
		if problem = cmp.Or(problem, err); lease.Lost(err) {
			return took, err
		}
		open = open && more || news
		if err := d.between(ctx); err != nil {
			return took, errors.Join(problem, err)
		}
	}
	return took, problem
}

// between does what must not wait until a pass ends: where jobs flow without a pause none does.
func (d *drain) between(ctx context.Context) error {
	if err := d.launched(); err != nil {
		return err
	}
	if since := d.clock().Sub(d.accounted); d.busy() == 0 || since >= 0 && since < idle {
		return nil
	}
	return d.account(ctx)
}

// urgentRoom is how many batches of tasks are under way at once where the rest is urgent: while one is signed, by a
// remote signer perhaps, the next is looked at.
const urgentRoom = 2

// fill begins with the most urgent tasks, as many as there is room for, and reports whether there was one. They are
// led through the stages until checking ends.
func (d *drain) fill(ctx, checking context.Context) (filled bool, err error) {
	pick, err := d.freeSlots(ctx)
	if d.full = pick.Limit == 0; err != nil || d.full {
		return false, err
	}
	if pick.Limit -= d.busy(); pick.Limit <= 0 && !d.slotsFull { // what is urgent has as much room of its own
		pick.Limit, pick.Urgent = urgentRoom*d.batch-d.busy(), true
	}
	if pick.Limit <= 0 {
		return false, nil
	}
	pick.Liquidations = d.limits.InFlight().Liquidations
	for {
		pick.Except = append(d.asked(), d.ids()...)
		heads, err := d.store.Heads(ctx, d.signer, pick)
		switch {
		case err != nil:
			return filled, err
		case len(heads) > 0:
			if err := d.numbers.reconcile(ctx); err != nil {
				return true, err
			}
			d.begin(checking, heads)
			if pick.Urgent || d.slotsFull || len(heads) < pick.Limit {
				return true, nil
			}
			filled, pick.Limit, pick.Urgent = true, urgentRoom*d.batch-d.busy(), true
		case filled || !d.nextRound():
			return filled, nil
		}
	}
}

// explain reports why nothing of a queue is taken, if that is not the order of things.
func (d *drain) explain(ctx context.Context, took bool) error {
	if took || len(d.deferrals) > 0 { // nothing but these is left
		return nil
	}
	depth, err := d.store.Depth(ctx, d.signer)
	if err != nil {
		return err
	}
	if depth == 0 { // what waited may be another signer's now
		d.blocked("")
		return nil
	}
	reason, err := d.store.Paused(ctx, d.signer)
	if err == nil && reason != "" {
		d.blocked("the signer is paused: " + reason)
	}
	return err
}

// process does what the stages have decided, and claims what got through them. It returns false when no other task
// would get further. The error is that of the first task that failed; others have had their turn.
func (d *drain) process(ctx context.Context, steps []step) (open bool, err error) {
	var problem error
	open = true
	for _, s := range steps {
		more, err := true, s.err
		switch {
		case err != nil:
			err = cmp.Or(d.failed(ctx, s), err)
		case s.verdict.Kind == Proceed:
			d.passed = append(d.passed, s.task)
		default:
			more, err = d.applyVerdict(ctx, s.stage, s.task.Intent, s.verdict)
		}
		open, problem = open && more, cmp.Or(problem, err)
	}
	tasks := d.claimable()
	if !lease.Lost(problem) && len(tasks) > 0 {
		more, err := d.claimOurs(ctx, tasks)
		open, problem = open && more, cmp.Or(problem, err)
	}
	if !open {
		d.passed = nil // they are queued as before
	}
	for _, s := range steps {
		tasks = append(tasks, s.task)
	}
	d.wait(tasks, open)
	return open, problem
}

// claimOurs claims tasks whose turn it still is, and keeps those for which another claim is to be made.
func (d *drain) claimOurs(ctx context.Context, tasks []*Task) (open bool, err error) {
	tasks, problem := d.stillOurs(ctx, tasks)
	if len(tasks) == 0 {
		return true, problem
	}
	left, open, err := d.send(ctx, tasks)
	d.passed = append(left, d.passed...)
	return open, cmp.Or(problem, err)
}

// failed passes a task over that could not be decided: others may have better luck meanwhile. That counts for its age
// like any other wait. The error is that of its end.
func (d *drain) failed(ctx context.Context, s step) error {
	i := s.task.Intent
	if d.postpone(i, pause); lease.Lost(s.err) || d.waited(i) < d.maxWait {
		return nil
	}
	return d.skip(ctx, i, End(job.Expired, "waited too long: "+s.err.Error()), d.overdue(i))
}

// stillOurs asks once more whose turn it is, immediately before the claim: the stages may have taken long.
func (d *drain) stillOurs(ctx context.Context, tasks []*Task) (ours []*Task, err error) {
	var problems []error
	for _, t := range tasks {
		v := d.turns.Ask(t.Job()).Verdict
		if v.Kind == Proceed {
			ours = append(ours, t)
			continue
		}
		_, err := d.applyVerdict(ctx, "turn", t.Intent, v)
		problems = append(problems, err)
	}
	return ours, errors.Join(problems...)
}

// send claims tasks and broadcasts them, and returns those that are still to be claimed. A batch that is refused is
// claimed in two parts, the more urgent first: as many as there are slots for, or half, until the one that is in the
// way stands alone and waits, or all slots are taken.
func (d *drain) send(ctx context.Context, tasks []*Task) (left []*Task, open bool, err error) {
	const claiming = "claim"
	v, err := d.claim(ctx, tasks)
	d.slotsFull = d.slotsFull || err == nil && v.Kind == PauseAll
	switch {
	case err != nil:
		for _, t := range tasks {
			d.postpone(t.Intent, pause)
		}
		return nil, false, err
	case v.Kind == Proceed:
		d.blocked("")
		for _, t := range tasks {
			delete(d.yielded, t.Intent.ID)
			d.turns.Taken(t.Job())
		}
		d.launch(ctx, tasks)
		return nil, true, nil
	case len(tasks) == 1:
		open, err = d.applyVerdict(ctx, claiming, tasks[0].Intent, v)
		return nil, open, err
	}
	first := len(tasks) / 2
	if v.Kind == PauseAll {
		switch pick, err := d.freeSlots(ctx); {
		case err != nil:
			return nil, false, err
		case pick.Limit == 0:
			open, err = d.applyVerdict(ctx, claiming, tasks[0].Intent, v)
			return nil, open, err
		case pick.Limit < len(tasks):
			first = pick.Limit
		}
	}
	left, open, err = d.send(ctx, tasks[:first])
	return append(left, tasks[first:]...), open, err
}

// applyVerdict does what a verdict asks for an intent. It returns false where it holds for every other one too.
func (d *drain) applyVerdict(ctx context.Context, stage string, i txm.Intent, v Verdict) (open bool, err error) {
	if v.Kind == PauseAll {
		d.metrics.waits.WithLabelValues(stage).Inc()
		d.blocked(v.Reason)
		return false, nil
	}
	d.blocked("")
	if v.Kind == Retry || v.Kind == Defer {
		d.metrics.waits.WithLabelValues(stage).Inc()
		if v.Kind == Defer {
			d.yielded[i.ID] = d.clock()
		}
		if d.waited(i) < d.maxWait {
			d.rested(i, v)
			if v.Shown {
				d.blocked(v.Reason)
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
	err := d.store.Skip(ctx, d.term.Fence(), i.ID, end)
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
