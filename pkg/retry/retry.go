// Package retry waits and tries again, the same way everywhere: with growing pauses, with full jitter, bounded, and
// cancellable at once.
//
// Whether trying again is safe is the caller's question, never this package's: a step that may have acted before it
// failed (a transaction that may have been sent) must not be put into Do.
package retry

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"
)

// Policy is how often to try again, and with which pauses. The zero Policy tries for ever, pausing up to 100 ms at
// first and up to 10 s later.
type Policy struct {
	// Initial bounds the pause after the first failure; 0 means 100 ms.
	Initial time.Duration
	// Max bounds every pause, which doubles from one to the next; 0 means 10 s, or Initial if that is longer.
	Max time.Duration
	// Attempts bounds the number of tries, the first included; 0 means until the context ends.
	Attempts int

	// Jitter picks a pause in [0, bound]; nil picks uniformly ("full jitter"), which keeps keepers that failed together
	// from returning together.
	Jitter func(bound time.Duration) time.Duration
	// OnRetry is called with every failure that will be tried again, before the pause: which attempt failed (from 1),
	// why, and how long the pause is.
	OnRetry func(attempt int, err error, wait time.Duration)
}

const (
	defaultInitial = 100 * time.Millisecond
	defaultMax     = 10 * time.Second
)

// bound is the longest pause after the given failed attempt (from 1).
func (p Policy) bound(attempt int) time.Duration {
	initial := cmp.Or(p.Initial, defaultInitial)
	longest := cmp.Or(p.Max, max(defaultMax, initial))
	grown := float64(initial) * math.Pow(2, float64(attempt-1))
	if grown < float64(longest) {
		return time.Duration(grown)
	}
	return longest
}

// pause picks how long to wait after the given failed attempt.
func (p Policy) pause(attempt int) time.Duration {
	bound := p.bound(attempt)
	if p.Jitter != nil {
		return p.Jitter(bound)
	}
	return rand.N(bound + 1) //nolint:gosec // a pause is no secret
}

// Do calls fn until it succeeds, and returns nil then. It gives up
//   - at an error marked by Stop, and returns it; the mark stays, so that a Do around this one gives up too;
//   - after the last attempt of the policy, and returns its error, wrapped;
//   - when ctx ends, at once, also in the middle of a pause. The error then wraps the cause of ctx's end and the last
//     failure.
//
// fn is not called at all when ctx has ended before.
func Do(ctx context.Context, p Policy, fn func(ctx context.Context) error) error {
	b := New(p)
	for b.Next(ctx) {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		if _, permanent := errors.AsType[*stopped](err); permanent {
			return err
		}
		b.Failed(err)
	}
	return b.Err(ctx)
}

// Stop marks an error as permanent: Do returns it at once, also when it has been wrapped since. Stop(nil) is nil.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stopped{err: err}
}

type stopped struct{ err error }

func (s *stopped) Error() string { return s.err.Error() }
func (s *stopped) Unwrap() error { return s.err }
