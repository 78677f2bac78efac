package ttl

import (
	"fmt"
	"runtime/debug"
)

// Try is one try at the work of an entry. It may be kept and reported on later, from any goroutine; the first report
// counts.
type Try[K comparable] struct {
	queue  *Queue[K]
	entry  *entry[K]
	number uint32
}

// Key returns the entry's key.
func (t Try[K]) Key() K { return t.entry.key }

// Remove reports that the work is done: the entry leaves the queue. It returns false, and nothing changes, when the
// report is stale: the entry was replaced, removed, or tried again, or this try has been reported on.
func (t Try[K]) Remove() bool {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if !t.open() {
		return false
	}
	q.drop(t.entry)
	return true
}

// Retry reports that the work failed: the entry is tried again when the retry delay has passed. It returns false when
// the report is stale; see Remove.
func (t Try[K]) Retry(err error) bool {
	failures := t.fail(err)
	if failures == 0 {
		return false
	}
	q := t.queue
	q.metrics.failures.Inc()
	if q.onFailure != nil {
		q.onFailure(t.Key(), failures, err)
	}
	return true
}

// fail marks the entry with the time and returns how often it has failed, or 0 when the report is stale. An entry that
// went back to the ttl queue meanwhile, because the role changed, stays there.
func (t Try[K]) fail(err error) (failures int) {
	q, e := t.queue, t.entry
	q.mu.Lock()
	defer q.mu.Unlock()
	if !t.open() {
		return 0
	}
	if e.failure == nil {
		e.failure = &failure{}
	}
	f := e.failure
	f.count++
	f.due, f.err = q.clock(), err
	if !q.cfg.exhausted(f.count) {
		f.due += q.cfg.delay(f.count)
	}
	e.open = false
	if e.state == pending {
		q.failed.add(e)
		q.Wake()
	}
	return int(f.count)
}

// open reports whether a report on the try still counts. The queue is locked.
func (t Try[K]) open() bool { return t.entry.state != gone && t.entry.open && t.entry.try == t.number }

// panicError is a panic of a callback.
type panicError struct {
	Value any
	Stack []byte
}

// Error names the value the callback panicked with.
func (e *panicError) Error() string { return fmt.Sprintf("the callback panicked: %v", e.Value) }

// recovered runs f and returns its error, or its panic as one.
func recovered(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return f()
}
