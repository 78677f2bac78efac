package preflight

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmanager"
)

const (
	// earlyFresh is how long ago an early question may have been asked, at most, for its answer to be taken.
	earlyFresh = 50 * time.Millisecond
	// mostEarly bounds the jobs of a signer that are looked at early at a time.
	mostEarly = 4
	// earlyMaxAge is how old, on the chain's clock, the state may be that a job was found in: what is read again after
	// a restart is not looked at early.
	earlyMaxAge = 5 * time.Second
	// maxSeenJobs bounds how many jobs are remembered that were published before.
	maxSeenJobs = 10_000
)

// early are speculative looks at jobs, begun while the jobs are being stored: the rows, the choice of reports and the
// simulated call, which would otherwise wait for the queue. Nothing rests on them but what would be the same if it were
// asked now ([early.fresh]), and only what lets the job go on is taken, of rows as of answers to calls (adr 0038).
//
// It is safe for concurrent use.
type early struct {
	head  *headtrack.Tracker
	clock func() time.Time
	count *prometheus.CounterVec // calls, by what became of them

	life    context.Context //nolint:containedctx // of the looks, which are made in the background
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	looks map[string]*earlyLook // by job
	seen  map[string]bool       // jobs that were published before
}

// earlyLook is one look. What it fills in is read after its channels are closed.
type earlyLook struct {
	at   time.Time  // when it was begun
	head chain.Hash // of the newest block then

	looked chan struct{} // closed when the next three are set
	read   pg.Rows
	known  bool           // the rows were read, and by them the job is still to be done
	call   txmanager.Call // to no contract where there is nothing to simulate

	answered chan struct{} // closed when the next two are set
	result   callResult
	err      error

	taken bool // it is settled what becomes of it; under the lock
}

func newEarly(p Parts) *early {
	life, end := context.WithCancel(context.Background())
	return &early{head: p.Head, clock: p.Clock, count: p.Metrics.early, life: life, end: end,
		looks: map[string]*earlyLook{}, seen: map[string]bool{}}
}

func (e *early) close() {
	e.mu.Lock() // none is begun from here on
	e.end()
	e.mu.Unlock()
	e.running.Wait()
}

// begin looks at a job in the background. What was published before is not looked at: it waits or is in flight. Nor is
// anything while enough is being looked at, or where ready reports that its turn in the queue will not be at once.
func (e *early) begin(j job.Job, ready bool, look func(context.Context, *earlyLook)) {
	head, _ := e.head.Newest()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen) >= maxSeenJobs {
		clear(e.seen)
	}
	isNew := !e.seen[j.ID] && e.head.Age(j.Evidence.Block.TimeMs) <= earlyMaxAge
	e.seen[j.ID] = true
	e.forget()
	if !isNew || !ready || len(e.looks) >= mostEarly || e.life.Err() != nil {
		return
	}
	l := &earlyLook{at: e.clock(), head: head.Hash, looked: make(chan struct{}), answered: make(chan struct{})}
	e.looks[j.ID] = l
	e.running.Go(func() {
		defer close(l.answered)
		look(e.life, l)
	})
}

// forget drops what nobody will ask for any more. What is still being looked at keeps its place. The lock is held.
func (e *early) forget() {
	for id, l := range e.looks {
		select {
		case <-l.answered:
		default:
			continue
		}
		if l.taken || !e.fresh(l) {
			delete(e.looks, id)
			e.settle(l, l.call.To != (chain.Address{}), "unused")
		}
	}
}

// fresh reports whether the questions of a look are as good as asked now: they were begun a moment ago, with the same
// newest block as now.
func (e *early) fresh(l *earlyLook) bool {
	head, _ := e.head.Newest()
	return l.head == head.Hash && e.clock().Sub(l.at) <= earlyFresh
}

// settle counts what became of a call, once. The lock is held.
func (e *early) settle(l *earlyLook, made bool, result string) {
	if made && !l.taken {
		e.count.WithLabelValues(result).Inc()
	}
	l.taken = true
}

// of returns the look at a job, if nobody has taken its answer yet, and whether it is fresh.
func (e *early) of(id string) (l *earlyLook, fresh bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l = e.looks[id]; l == nil || l.taken {
		return nil, false
	}
	return l, e.fresh(l)
}

// rows returns those that were read for a job, if they are as good as read now.
func (e *early) rows(ctx context.Context, id string) (read pg.Rows, is bool) {
	l, fresh := e.of(id)
	if !fresh || !over(ctx, l.looked) {
		return pg.Rows{}, false
	}
	return l.read, l.known
}

// answer returns what the simulated call of a job was answered with, if the very same call was made, as good as now,
// and succeeds. Anything else has to be asked now: only a call that was made at the job's turn holds it back, or ends
// it.
func (e *early) answer(ctx context.Context, id string, call txmanager.Call) (answered callResult, is bool) {
	l, fresh := e.of(id)
	if l == nil {
		return callResult{}, false
	}
	result := "used"
	switch {
	case !fresh, !over(ctx, l.looked), !same(l.call, call):
		result = "outdated"
	case !over(ctx, l.answered), l.err != nil, l.result.verdict.Kind != txmanager.Onward:
		result = "unsuccessful"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle(l, true, result)
	if result != "used" {
		return callResult{}, false // the call may still be under way
	}
	return l.result, true
}

// over waits for a look, and reports whether it came to its end before the caller has to stop.
func over(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// same reports whether two calls are one, to the byte and to the unit of gas.
func same(a, b txmanager.Call) bool {
	return a.To == b.To && a.Gas == b.Gas && bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Rehearsal, b.Rehearsal)
}

// Early takes a job that is about to be queued, and looks at it in the background if ready reports that its turn in the
// queue will be at once: so long as nothing changes until then, [Checker.Read] and [Checker.Run] need not ask again.
func (r *Checker) Early(j job.Job, ready bool) {
	r.early.begin(j, ready, func(ctx context.Context, l *earlyLook) { r.look(ctx, j, l) })
}

// look reads what a job is checked by, puts its call together, and simulates it. It gives up without a reason:
// the job's turn in the queue may find it.
func (r *Checker) look(ctx context.Context, j job.Job, l *earlyLook) {
	if read, err := r.State.Look(ctx, keysOf(j)); err == nil {
		if terms, v, err := r.pending.look(ctx, read, j); err == nil && v.Kind == txmanager.Onward {
			l.read, l.known = read, true
			l.call, _, _ = r.prepare(j, terms, 0)
		}
	}
	close(l.looked)
	if l.call.To != (chain.Address{}) {
		l.result, l.err = r.simulate(ctx, r.Node, j, l.call)
	}
}
