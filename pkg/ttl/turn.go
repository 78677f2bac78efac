package ttl

import (
	"context"
	"time"
)

// Turn does what is due, a bounded amount of it (TTL-4), and returns how long to sleep before the next turn: 0 when it
// stopped at a bound, otherwise until the next expiry or the next try of a failed entry, or the idle delay when neither
// is to come or the queue is paused (TTL-5). A signal (Woken) ends the sleep early. Callbacks run within the call.
func (q *Queue[K]) Turn() time.Duration {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock()
	moreRetries := q.retry(now)
	moreExpiries := q.expire(now)
	switch {
	case q.paused():
		return q.cfg.IdleDelay
	case moreRetries || moreExpiries:
		return 0
	}
	return q.sleep()
}

func (q *Queue[K]) paused() bool { return q.stopped || !q.leads }

// retry moves failed entries whose delay has passed back to the ttl queue, where they are the first to expire. It
// reports whether it left any.
func (q *Queue[K]) retry(now time.Duration) (more bool) {
	for n := 0; !q.paused(); n++ {
		e := q.failed.min()
		if e == nil || e.failure.due > now {
			return false
		}
		if n == maxRetries {
			return true
		}
		q.takeOut(e)
		q.wait(e)
	}
	return false
}

// expire runs the callbacks of expired entries. It reports whether it left any.
func (q *Queue[K]) expire(now time.Duration) (more bool) {
	for n := 0; !q.paused(); n++ {
		e := q.ttl.min()
		if e == nil || e.expiry > now {
			return false
		}
		if n == maxExpiries {
			return true
		}
		if f := e.failure; f != nil && q.cfg.exhausted(f.count) {
			q.giveUp(e)
		} else {
			q.begin(e)
		}
	}
	return false
}

// begin starts a try. The queue is unlocked while the callback runs.
func (q *Queue[K]) begin(e *entry[K]) {
	q.takeOut(e)
	e.state = pending
	q.pending.add(e)
	e.try++
	e.open = true
	if e.failure != nil {
		q.metrics.retries.Inc()
	}
	t := Try[K]{queue: q, entry: e, number: e.try}
	q.mu.Unlock()
	defer q.mu.Lock()
	if err := recovered(func() error { return q.callback(t) }); err != nil {
		t.Retry(err)
	}
}

// giveUp drops an entry that has failed for the last time. The queue is unlocked while the dead-letter callback runs.
func (q *Queue[K]) giveUp(e *entry[K]) {
	q.drop(e)
	key, failures, err := e.key, int(e.failure.count), e.failure.err
	q.mu.Unlock()
	defer q.mu.Lock()
	if q.deadLetter == nil {
		return
	}
	panicked := recovered(func() error { q.deadLetter(key, failures, err); return nil })
	if panicked != nil && q.onFailure != nil {
		q.onFailure(key, failures, panicked)
	}
}

// sleep is how long nothing is due.
func (q *Queue[K]) sleep() time.Duration {
	next, known := time.Duration(0), false
	if e := q.ttl.min(); e != nil {
		next, known = e.expiry, true
	}
	if e := q.failed.min(); e != nil && (!known || e.failure.due < next) {
		next, known = e.failure.due, true
	}
	if !known {
		return q.cfg.IdleDelay
	}
	return max(0, next-q.clock())
}

// Run makes turns until ctx ends, which stops the queue, or until somebody else stops it. It returns when no callback
// runs any more.
func (q *Queue[K]) Run(ctx context.Context) {
	defer q.Stop()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		case <-alarm.C:
		}
		if ctx.Err() != nil || q.ended() {
			return
		}
		alarm.Reset(q.Turn())
	}
}

func (q *Queue[K]) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stopped
}

// Stop ends the queue and its Run: no callback starts any more, and one that runs is waited for. Reports may still come
// and start nothing.
func (q *Queue[K]) Stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.Wake()
	q.turn <- struct{}{} // A turn is under way until its callback has returned.
	<-q.turn
}
