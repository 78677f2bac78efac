// Package headtrack tracks the newest block of a chain and when it came. It is the clock of whoever acts on the chain:
// when blocks stop, time stops, so that nobody acts on a halted chain.
package headtrack

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
)

// Tracker holds the newest block that this process has seen, and when it saw it. It is safe for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	clock   func() time.Time
	head    chain.BlockRef
	arrived time.Time     // by clock, which is compared with itself alone
	chain   chain.Clock   // runs on for a moment between two heads
	changed chan struct{} // closed when a newer head has come
}

// New makes a tracker that knows no block. The clock is compared with itself alone.
func New(clock func() time.Time) *Tracker {
	return &Tracker{clock: clock, changed: make(chan struct{})}
}

// Follow keeps the newest head until ctx ends.
func (h *Tracker) Follow(ctx context.Context, heads <-chan chain.BlockRef) error {
	for {
		select {
		case head, open := <-heads:
			if !open {
				return cmp.Or(context.Cause(ctx), errors.New("the node's heads have ended"))
			}
			h.Set(head, h.clock())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Set takes in a head that came at a time of the clock.
func (h *Tracker) Set(head chain.BlockRef, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head, h.arrived = head, at
	h.chain.Head(head.TimeMs, at)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Newest returns the head and how long ago it came; a long time when none ever did.
func (h *Tracker) Newest() (chain.BlockRef, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.arrived.IsZero() {
		return h.head, time.Hour
	}
	return h.head, h.clock().Sub(h.arrived)
}

// Next is closed when the next head comes.
func (h *Tracker) Next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Time is the chain's time (ms) at this moment, by which turns are measured; 0 while no block has come.
func (h *Tracker) Time() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.chain.Now(h.clock())
}

// Clock reads the clock of [New].
func (h *Tracker) Clock() time.Time { return h.clock() }

// Number is the newest block's, 0 while no block has come.
func (h *Tracker) Number() uint64 {
	head, _ := h.Newest()
	return head.Number
}

// Now is the newest block's time (ms), 0 while no block has come.
func (h *Tracker) Now() uint64 {
	head, _ := h.Newest()
	return head.TimeMs
}

// Age is how long ago, on the chain's clock, something happened.
func (h *Tracker) Age(ms uint64) time.Duration {
	head, _ := h.Newest()
	if head.TimeMs < ms {
		return 0
	}
	return time.Duration(head.TimeMs-ms) * time.Millisecond
}
