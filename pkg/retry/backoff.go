package retry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Backoff is the loop form of Do, for callers that decide between two tries:
//
//	b := retry.New(policy)
//	for b.Next(ctx) {
//		conn, err := dial(ctx)
//		if err != nil {
//			b.Failed(err)
//			continue
//		}
//		b.Reset() // it works again: the next pause is a short one
//		b.Failed(serve(conn))
//	}
//	return b.Err(ctx)
//
// A Backoff belongs to one goroutine.
type Backoff struct {
	policy  Policy
	begun   bool
	attempt int
	last    error
}

// New returns a Backoff at its beginning.
func New(p Policy) *Backoff { return &Backoff{policy: p} }

// Next reports whether to try (again). The first call never waits; every later one waits out the policy's pause. It
// returns false, without further waiting, when ctx has ended or the attempts are used up.
func (b *Backoff) Next(ctx context.Context) bool {
	if ctx.Err() != nil || b.exhausted() {
		return false
	}
	if b.begun && !b.wait(ctx) {
		return false
	}
	b.begun = true
	b.attempt++
	return true
}

func (b *Backoff) exhausted() bool { return b.policy.Attempts > 0 && b.attempt >= b.policy.Attempts }

// wait sits out the pause after the current attempt and returns false if ctx ends meanwhile.
func (b *Backoff) wait(ctx context.Context) bool {
	pause := b.policy.pause(max(b.attempt, 1))
	if b.policy.OnRetry != nil {
		b.policy.OnRetry(b.attempt, b.last, pause)
	}
	return Sleep(ctx, pause)
}

// Sleep waits for a time. It returns false, at once, when ctx ends meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil // Both may have come at once; the end of ctx wins.
	case <-ctx.Done():
		return false
	}
}

// Failed remembers why the current attempt failed, for OnRetry and Err.
func (b *Backoff) Failed(err error) { b.last = err }

// Attempt is the number of the current attempt, from 1; 0 before the first Next and after Reset.
func (b *Backoff) Attempt() int { return b.attempt }

// Reset notes a success: attempts and pauses are counted from the beginning again. The next Next still waits, for a
// first pause, so that something that works for a moment only does not become a busy loop.
func (b *Backoff) Reset() { b.attempt, b.last = 0, nil }

// Err reports why the loop ended: the cause of ctx's end, with the last failure if there was one, or the failure of the
// last attempt.
func (b *Backoff) Err(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case b.last == nil:
		return cause
	case cause == nil:
		return fmt.Errorf("giving up after %d attempts: %w", b.attempt, b.last)
	case errors.Is(b.last, cause):
		return b.last
	default:
		return fmt.Errorf("%w (attempt %d had failed: %w)", cause, b.attempt, b.last)
	}
}
