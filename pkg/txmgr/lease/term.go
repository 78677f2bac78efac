package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/retry"
)

// Term is the time during which this process owns a signer, from acquiring its lease until losing or releasing it.
// [Term.Keep] must run while it is in use. Its methods are safe for concurrent use.
type Term struct {
	store   Store
	fence   Fence
	ttl     time.Duration
	metrics *Metrics
	now     func() time.Time

	mu    sync.Mutex
	until time.Time // monotonic; past it this process takes the lease for lost, whatever the database answers
}

// Acquire takes the lease of a signer and begins a term. See [Store.Acquire] for its errors.
func Acquire(ctx context.Context, store Store, signer chain.Address, owner Owner, ttl time.Duration,
	m *Metrics) (*Term, error) {
	return AcquireBy(ctx, time.Now, store, signer, owner, ttl, m)
}

// AcquireBy is [Acquire] by another clock than the process's own, as where time is simulated. The clock must not go
// back; it is compared with itself alone.
func AcquireBy(ctx context.Context, now func() time.Time, store Store, signer chain.Address, owner Owner,
	ttl time.Duration, m *Metrics) (*Term, error) {
	asked := now()
	fence, err := store.Acquire(ctx, signer, owner, ttl)
	m.acquired(err)
	if err != nil {
		return nil, fmt.Errorf("acquiring the lease of %s: %w", signer, err)
	}
	return &Term{store: store, fence: fence, ttl: ttl, metrics: m, now: now, until: asked.Add(trusted(ttl))}, nil
}

// trusted is for how long after a request was sent its lease is relied on: less than the TTL, which the database counts
// from later on.
func trusted(ttl time.Duration) time.Duration { return ttl * 7 / 10 }

// Fence returns the proof of ownership that writes of this term present.
func (t *Term) Fence() Fence { return t.fence }

// Check returns a [LostError] once the term's deadline has passed. It is asked immediately before signing and before
// broadcasting.
func (t *Term) Check(op string) error {
	if t.now().Before(t.deadline()) {
		return nil
	}
	return &LostError{Fence: t.fence, Op: op}
}

func (t *Term) deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// Keep renews the lease at a third of its TTL until ctx ends, and returns nil then, or until the term is over, and
// returns a [LostError]. A database that does not answer is asked again, sooner, until the deadline.
func (t *Term) Keep(ctx context.Context) error {
	for rest := t.rest(); retry.Sleep(ctx, rest); {
		var err error
		if rest, err = t.RenewOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// RenewOnce renews the lease once and returns how long to wait before the next renewal. [Term.Keep] calls it whenever
// that time has passed. A database that does not answer is no error yet. The error is a [LostError]: the term is
// over.
func (t *Term) RenewOnce(ctx context.Context) (rest time.Duration, err error) {
	if err := t.Check("renew"); err != nil {
		t.metrics.renewed(err)
		return 0, err
	}
	switch err := t.renew(ctx); {
	case Lost(err):
		return 0, err
	case err == nil:
		return t.rest(), nil
	default:
		return min(t.ttl/20, t.left()), nil
	}
}

// rest is how long to wait before the next renewal.
func (t *Term) rest() time.Duration { return min(t.ttl/3, t.left()) }

// left is the time until the term's deadline if nothing is renewed.
func (t *Term) left() time.Duration { return t.deadline().Sub(t.now()) }

// renew asks the store once, and moves the deadline. An answer after the deadline is too late and counts as lost.
func (t *Term) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.left())
	defer cancel()
	asked := t.now()
	err := t.store.Renew(ctx, t.fence, t.ttl)
	if err == nil {
		err = t.extend(asked.Add(trusted(t.ttl)))
	}
	t.metrics.renewed(err)
	return err
}

func (t *Term) extend(until time.Time) error {
	if err := t.Check("renew"); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = until
	return nil
}

// Release ends the term, here at once and at the database for the next owner's sake. Nothing of the term may be
// under way any more.
func (t *Term) Release(ctx context.Context) error {
	t.mu.Lock()
	t.until = time.Time{}
	t.mu.Unlock()
	if err := t.store.Release(ctx, t.fence); err != nil {
		return fmt.Errorf("releasing the lease of %s: %w", t.fence.Signer, err)
	}
	return nil
}
