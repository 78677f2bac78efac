package sender

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/txmanager"
	"perpkeeper/services/sender/turns"
)

// pause is how long a task that was told to wait is passed over.
const pause = 300 * time.Millisecond

// drain takes a signer's queued intents down the road, the most urgent first (NON-9). Several are looked at side by
// side, claimed in one statement and broadcast together; the numbers they get are in the order of their urgency.
type drain struct {
	tenure *lease.Tenure
	turns  *turns.Tracker
	road   []txmanager.Stage
	// claim gives tasks their nonces, all or none, and launch broadcasts them.
	claim  func(ctx context.Context, tasks []*txmanager.Task) (txmanager.Verdict, error)
	launch func(ctx context.Context, tasks []*txmanager.Task) error
	tidy   func(ctx context.Context) error // called when nothing is left to take
	// reconcile compares the signer's nonces with the chain, if that has not been done.
	reconcile func(ctx context.Context) error
	count     func(ctx context.Context) (spent uint64, err error) // reads what the signer has spent
	words     func(ctx context.Context) error                     // reads the exchange's words on gas, if it is time
	// how many more transactions of the signer may be claimed, and how many more of the liquidations' lane
	places  func(ctx context.Context) (all, urgent int, err error)
	queue   txm.Queue
	batch   int
	limits  limits
	maxAge  time.Duration
	rest    func(i txm.Intent, o job.Outcome) txm.Rest
	metrics *Metrics
	log     zerolog.Logger
	clock   func() time.Time
	head    func() uint64 // the newest head's number
	ended   func()        // called when an intent has ended
	gate    func(string)  // told why nothing can be sent; empty when something could

	counted bool                // nothing has happened since the last tally
	crowded bool                // the last claim was refused because too many transactions are in flight
	asleep  map[int64]nap       // until when a task is passed over
	yielded map[int64]time.Time // when a task was last told that it is another tier's
}

// pass takes tasks until there is none left to take, or the gate is closed. What is to be counted is counted
// afterwards, while no job waits for it. Until then the purse knows less than it may spend rather than more: what was
// taken from it counts at once. The first pass of a tenure, and one after a failure, cannot rely on that and counts
// first.
func (d *drain) pass(ctx context.Context) error {
	if !d.counted {
		if err := d.tally(ctx); err != nil {
			return err
		}
	}
	d.counted = false
	if err := d.empty(ctx); err != nil {
		return err
	}
	return d.tally(ctx)
}

// tally counts what is queued and what the signer has spent.
func (d *drain) tally(ctx context.Context) error {
	signer := d.tenure.Fence().Signer
	depth, err := d.queue.Depth(ctx, signer)
	if err != nil {
		return err
	}
	spent, err := d.count(ctx)
	if err != nil {
		return err
	}
	if err := d.words(ctx); err != nil {
		return err
	}
	d.metrics.queueDepth.WithLabelValues(signer.Hex()).Set(float64(depth))
	d.metrics.spent.WithLabelValues(signer.Hex()).Set(float64(spent))
	d.counted = true
	return nil
}

func (d *drain) empty(ctx context.Context) error {
	signer := d.tenure.Fence().Signer
	for took := false; ctx.Err() == nil; took = true {
		pick, err := d.room(ctx)
		if err != nil || pick.Limit == 0 {
			return err
		}
		pick.Except, pick.Liquidations = d.sleeping(), d.limits.flights().Liquidations
		heads, err := d.queue.Heads(ctx, signer, pick)
		if err != nil {
			return err
		}
		if len(heads) == 0 {
			return errors.Join(d.idle(ctx, took), d.tidy(ctx))
		}
		if err := d.reconcile(ctx); err != nil {
			return err
		}
		if open, err := d.take(ctx, heads); err != nil || !open {
			return err
		}
	}
	return nil
}

// room is which tasks are worth looking at, and how many. After a claim was refused for want of places they are no more
// than there are places, and only urgent ones where no others find any, so that nodes are not asked at every head about
// jobs that cannot be sent; otherwise nobody counts on the road.
func (d *drain) room(ctx context.Context) (p txm.Pick, err error) {
	if !d.crowded {
		return txm.Pick{Limit: d.batch}, nil
	}
	all, urgent, err := d.places(ctx)
	switch {
	case err != nil:
		return p, err
	case all > 0:
		d.crowded = false
		return txm.Pick{Limit: min(all, d.batch)}, nil
	}
	return txm.Pick{Limit: max(0, min(urgent, d.batch)), Urgent: true}, nil
}

// idle says why nothing of a queue is taken, if that is not the order of things.
func (d *drain) idle(ctx context.Context, took bool) error {
	if took || len(d.asleep) > 0 {
		return nil
	}
	signer := d.tenure.Fence().Signer
	depth, err := d.queue.Depth(ctx, signer)
	if err != nil || depth == 0 {
		return err
	}
	reason, err := d.queue.Paused(ctx, signer)
	if err == nil && reason != "" {
		d.gate("the signer is paused: " + reason)
	}
	return err
}

// nap is how long a task is passed over: until a time, or a head where one is named, or some news.
type nap struct {
	until time.Time
	head  uint64
	news  <-chan struct{}
}

func (n nap) over(now time.Time, head uint64) bool {
	select {
	case <-n.news:
		return true
	default:
	}
	if n.head > 0 {
		return head >= n.head
	}
	return !now.Before(n.until)
}

// sleeping lists the tasks to pass over, and wakes those whose time has come.
func (d *drain) sleeping() []int64 {
	var ids []int64
	now, head := d.clock(), d.head()
	for id, n := range d.asleep {
		if !n.over(now, head) {
			ids = append(ids, id)
		} else {
			delete(d.asleep, id)
		}
	}
	return ids
}

// take leads tasks as far as they get. It returns false when no other task would get further.
func (d *drain) take(ctx context.Context, heads []txm.Intent) (open bool, err error) {
	steps := d.look(ctx, heads)
	var ready []*txmanager.Task
	var problems []error
	open = true
	for _, s := range steps {
		switch {
		case s.err != nil:
			d.sleep(s.task.Intent, pause) // whatever it was, others may have better luck meanwhile
			problems = append(problems, s.err)
		case s.verdict.Kind == txmanager.Onward:
			ready = append(ready, s.task)
		default:
			more, err := d.heed(ctx, s.stage, s.task.Intent, s.verdict)
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

// stillOurs asks once more whose turn it is, immediately before the claim: the road may have been long.
func (d *drain) stillOurs(ctx context.Context, tasks []*txmanager.Task) (ours []*txmanager.Task, err error) {
	var problems []error
	for _, t := range tasks {
		v := d.turns.Ask(t.Job()).Verdict
		if v.Kind == txmanager.Onward {
			ours = append(ours, t)
			continue
		}
		_, err := d.heed(ctx, "turn", t.Intent, v)
		problems = append(problems, err)
	}
	return ours, errors.Join(problems...)
}

// look leads tasks down the road side by side, up to the claim.
func (d *drain) look(ctx context.Context, heads []txm.Intent) []step {
	steps := make([]step, len(heads))
	group, ctx := errgroup.WithContext(ctx)
	for i, head := range heads {
		group.Go(func() error {
			steps[i] = d.walk(ctx, &txmanager.Task{Intent: head})
			return nil
		})
	}
	_ = group.Wait() // no step returns its error this way
	return steps
}

// step is how far a task got, and why no further.
type step struct {
	task    *txmanager.Task
	stage   string
	verdict txmanager.Verdict
	err     error
}

func (d *drain) walk(ctx context.Context, t *txmanager.Task) step {
	for _, s := range d.road {
		if v, err := s.Run(ctx, t); err != nil || v.Kind != txmanager.Onward {
			return step{t, s.Name, v, err}
		}
	}
	return step{task: t}
}

// send claims tasks and broadcasts them. A batch that is refused is claimed one by one: the one that is in the way
// waits, and the others go on.
func (d *drain) send(ctx context.Context, tasks []*txmanager.Task) (open bool, err error) {
	const claiming = "claim"
	v, err := d.claim(ctx, tasks)
	d.crowded = d.crowded || err == nil && v.Kind == txmanager.Closed
	switch {
	case err != nil:
		for _, t := range tasks {
			d.sleep(t.Intent, pause)
		}
		return false, err
	case v.Kind == txmanager.Onward:
		for _, t := range tasks {
			delete(d.yielded, t.Intent.ID)
			d.turns.Taken(t.Job())
		}
		return true, d.launch(ctx, tasks)
	case len(tasks) == 1:
		return d.heed(ctx, claiming, tasks[0].Intent, v)
	}
	for _, t := range tasks {
		if open, err = d.send(ctx, []*txmanager.Task{t}); err != nil || !open {
			return open, err
		}
	}
	return true, nil
}

func (d *drain) heed(ctx context.Context, stage string, i txm.Intent, v txmanager.Verdict) (open bool, err error) {
	if v.Kind == txmanager.Closed {
		d.metrics.waits.WithLabelValues(stage).Inc()
		d.gate(v.Reason)
		return false, nil
	}
	d.gate("")
	if v.Kind == txmanager.Waiting || v.Kind == txmanager.Yielding {
		d.metrics.waits.WithLabelValues(stage).Inc()
		if v.Kind == txmanager.Yielding {
			d.yielded[i.ID] = d.clock()
		}
		if d.waited(i) < d.maxAge {
			d.rested(i, v)
			d.log.Debug().Str("job", i.Job.ID).Uint32("arm", i.Arm).Str("stage", stage).Str("reason", v.Reason).
				Msg("waiting")
			return true, nil
		}
		return true, d.skip(ctx, i, txmanager.End(job.Expired, "waited too long: "+v.Reason), d.overdue(i))
	}
	return true, d.skip(ctx, i, v, d.rest(i, v.Outcome))
}

func (d *drain) sleep(i txm.Intent, rest time.Duration) {
	d.asleep[i.ID] = nap{until: d.clock().Add(rest)}
}

// rested passes a task over for as long as a verdict says.
func (d *drain) rested(i txm.Intent, v txmanager.Verdict) {
	if v.Heads > 0 {
		d.asleep[i.ID] = nap{head: d.head() + v.Heads, news: v.News}
		return
	}
	d.sleep(i, cmp.Or(v.Pause, pause))
}

// waited is for how long a task has waited in turns of its own.
func (d *drain) waited(i txm.Intent) time.Duration {
	if at, yielded := d.yielded[i.ID]; yielded {
		return min(i.Waited, d.clock().Sub(at))
	}
	return i.Waited
}

// overdue is what comes after an arm that has waited too long. People are told; but what is most urgent is not put off
// for that, whoever was in the way.
func (d *drain) overdue(i txm.Intent) txm.Rest {
	rest := d.rest(i, job.Expired)
	if txm.LaneOf(i.Job.Kind) == txm.LiquidationLane {
		rest.RearmMs = 0
	}
	return rest
}

// skip ends an intent that never got a nonce. One that has moved on meanwhile is somebody else's.
func (d *drain) skip(ctx context.Context, i txm.Intent, v txmanager.Verdict, rest txm.Rest) error {
	end := txm.Ending{Verdict: txm.Verdict{Outcome: v.Outcome, Reason: v.Reason}, Rest: rest}
	err := d.queue.Skip(ctx, d.tenure.Fence(), i.ID, end)
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
