package ttl

import (
	"cmp"
	"sync"
	"time"
)

// Clock returns the time since an origin of the caller's choice. It must not go back. Expiries are times of this clock:
// with Unix time of the chain as its origin, an expiry is an absolute time of the chain.
type Clock func() time.Duration

// monotonic returns a clock that starts now and follows the process's monotonic time.
func monotonic() Clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// Options are what a queue is made of. Callback is required.
type Options[K comparable] struct {
	Config Config
	// Clock is Monotonic() when nil.
	Clock Clock
	// Callback begins the work of an expired entry. It returns nil also when the work goes on elsewhere: the entry
	// stays pending until the try is reported. It must not call Turn, Run or Stop of its queue.
	Callback func(Try[K]) error
	// DeadLetter takes an entry that has failed for the last time and is no longer in the queue; may be nil.
	DeadLetter func(key K, failures int, err error)
	// OnFailure is called for every failure, outside all locks; may be nil. A panic is a *panicError.
	OnFailure func(key K, failures int, err error)
	// Metrics may be nil.
	Metrics *Watched
}

// Queue holds entries by key. It is safe for concurrent use.
type Queue[K comparable] struct {
	cfg        Config
	clock      Clock
	callback   func(Try[K]) error
	deadLetter func(K, int, error)
	onFailure  func(K, int, error)
	metrics    *Watched
	wake       chan struct{} // holds one token when there may be something to do

	turn chan struct{} // holds one token while a turn is under way, callbacks included

	mu      sync.Mutex
	entries map[K]*entry[K]
	ttl     ordered[K] // by (expiry, key): not expired
	pending ordered[K] // by (expiry, key): expired, not reported as done
	failed  ordered[K] // by (time of the next try, expiry, key): those of the pending that failed
	leads   bool
	stopped bool
}

// New makes a queue of keys with a natural order. It is paused until Lead(true).
func New[K cmp.Ordered](o Options[K]) *Queue[K] { return newFunc(o, cmp.Compare[K]) }

// newFunc makes a queue of keys that compare orders, which decides the order among equal expiries.
func newFunc[K comparable](o Options[K], compare func(a, b K) int) *Queue[K] {
	expiresBefore := func(a, b *entry[K]) bool {
		return a.expiry < b.expiry || a.expiry == b.expiry && compare(a.key, b.key) < 0
	}
	q := &Queue[K]{
		cfg: o.Config, clock: o.Clock, callback: o.Callback, deadLetter: o.DeadLetter, onFailure: o.OnFailure,
		metrics: o.Metrics,
		wake:    make(chan struct{}, 1), turn: make(chan struct{}, 1), entries: map[K]*entry[K]{},
		ttl:     ordered[K]{list: byExpiry, before: expiresBefore},
		pending: ordered[K]{list: byExpiry, before: expiresBefore},
		failed: ordered[K]{list: byRetry, before: func(a, b *entry[K]) bool {
			return a.failure.due < b.failure.due || a.failure.due == b.failure.due && expiresBefore(a, b)
		}},
	}
	if q.clock == nil {
		q.clock = monotonic()
	}
	if q.metrics == nil {
		q.metrics = NewMetrics(nil).Watch("")
	}
	q.metrics.follow(q.Stats)
	return q
}

// Set adds an entry, or replaces the one of the same key in whatever state it is, also while its callback runs: it is
// then a new entry, without failures, and reports on the old one are ignored.
func (q *Queue[K]) Set(key K, expiry time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, known := q.entries[key]
	if known {
		q.takeOut(e)
	} else {
		e = &entry[K]{key: key, slots: [lists]int32{nowhere, nowhere}}
		q.entries[key] = e
	}
	e.expiry, e.failure, e.open = expiry, nil, false
	e.try++
	q.wait(e)
	if q.ttl.min() == e {
		q.Wake()
	}
}

// Remove takes an entry out, in whatever state it is, and reports whether there was one. A callback that runs for it
// goes on, and its report is ignored.
func (q *Queue[K]) Remove(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, known := q.entries[key]
	if known {
		q.drop(e)
	}
	return known
}

// Lead sets whether this process leads. A change moves every pending entry back to the ttl queue, with the
// expiry it had.
func (q *Queue[K]) Lead(leads bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leads == leads {
		return
	}
	q.leads = leads
	for e := q.pending.min(); e != nil; e = q.pending.min() {
		q.takeOut(e)
		q.wait(e)
	}
	q.Wake()
}

// Wake ends the sleep between two turns. It is needed when the clock has jumped; the queue's own
// methods do it themselves.
func (q *Queue[K]) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Stats are the figures of a queue at one moment.
type Stats struct {
	Waiting, Pending, Failed int // Failed are those of the pending that wait for another try
	// OldestPending is how long ago the pending entry that expired first did so.
	OldestPending time.Duration
}

// Stats returns the figures of this moment.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Waiting: len(q.ttl.items), Pending: len(q.pending.items), Failed: len(q.failed.items)}
	if oldest := q.pending.min(); oldest != nil {
		s.OldestPending = q.clock() - oldest.expiry
	}
	return s
}

// wait puts an entry that stands nowhere into the ttl queue.
func (q *Queue[K]) wait(e *entry[K]) {
	e.state = waiting
	q.ttl.add(e)
}

// takeOut takes an entry out of every list.
func (q *Queue[K]) takeOut(e *entry[K]) {
	if e.failed() {
		q.failed.remove(e)
	}
	switch e.state {
	case waiting:
		q.ttl.remove(e)
	case pending:
		q.pending.remove(e)
	case gone:
	}
	e.state = gone
}

// drop forgets an entry.
func (q *Queue[K]) drop(e *entry[K]) {
	q.takeOut(e)
	delete(q.entries, e.key)
}
