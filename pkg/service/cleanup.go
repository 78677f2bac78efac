package service

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// cleanup gives back one thing the process has acquired.
type cleanup struct {
	name string
	fn   func(context.Context) error
}

// run calls the clean-up and waits for it until ctx ends; after that it is left to itself.
func (c cleanup) run(ctx context.Context) error {
	done := make(chan error, 1)
	spawn(func() error { return c.fn(ctx) }, func(err error) { done <- err })
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: not cleaned up within the grace period", c.name)
	}
}

// cleanups is the stack of what is to be given back. Start rolls back through it when it fails, and a stop drains the
// same stack.
type cleanups struct {
	mu      sync.Mutex
	stack   []cleanup
	drained bool
}

// push registers a clean-up. It returns false if the stack has been drained already.
func (s *cleanups) push(c cleanup) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained {
		return false
	}
	s.stack = append(s.stack, c)
	return true
}

// pop takes the youngest clean-up off the stack and marks the stack as drained when there is none.
func (s *cleanups) pop() (c cleanup, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.stack) - 1
	if last < 0 {
		s.drained = true
		return cleanup{}, false
	}
	c = s.stack[last]
	s.stack = s.stack[:last]
	return c, true
}

// drain runs all clean-ups, youngest first, until the deadline. Each gets at most half of what is left of the time, so
// that one that hangs does not take the turn of those below it.
func (s *cleanups) drain(deadline time.Time) []error {
	var failures []error
	for {
		c, ok := s.pop()
		if !ok {
			return failures
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Until(deadline)/2)
		if err := c.run(ctx); err != nil {
			failures = append(failures, err)
		}
		cancel()
	}
}
