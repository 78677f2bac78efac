package sender

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/tier"
)

// horizon is the newest block this process has heard of, and when. It is the clock of the sender: when blocks stop,
// time stops, so that nobody acts on a halted chain.
type horizon struct {
	mu      sync.Mutex
	clock   func() time.Time
	head    chain.BlockRef
	arrived time.Time     // by clock, which is compared with itself alone
	chain   tier.Clock    // runs on for a moment between two heads
	changed chan struct{} // closed when a newer head has come
}

func newHorizon(clock func() time.Time) *horizon {
	return &horizon{clock: clock, changed: make(chan struct{})}
}

// follow keeps the newest head until ctx ends.
func (h *horizon) follow(ctx context.Context, heads <-chan chain.BlockRef) error {
	for {
		select {
		case head, open := <-heads:
			if !open {
				return cmp.Or(context.Cause(ctx), errors.New("the node's heads have ended"))
			}
			h.set(head, h.clock())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (h *horizon) set(head chain.BlockRef, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head, h.arrived = head, at
	h.chain.Head(head.TimeMs, at)
	close(h.changed)
	h.changed = make(chan struct{})
}

// newest returns the head and how long ago it came; a long time when none ever did.
func (h *horizon) newest() (chain.BlockRef, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.arrived.IsZero() {
		return h.head, time.Hour
	}
	return h.head, h.clock().Sub(h.arrived)
}

// next is closed when the next head comes.
func (h *horizon) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// time is the chain's time (ms) at this moment, by which turns are measured; 0 while no block has come.
func (h *horizon) time() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.chain.Now(h.clock())
}

// number is the newest block's, 0 while no block has come.
func (h *horizon) number() uint64 {
	head, _ := h.newest()
	return head.Number
}

// now is the newest block's time (ms), 0 while no block has come.
func (h *horizon) now() uint64 {
	head, _ := h.newest()
	return head.TimeMs
}

// age is how long ago, on the chain's clock, something happened.
func (h *horizon) age(ms uint64) time.Duration {
	head, _ := h.newest()
	if head.TimeMs < ms {
		return 0
	}
	return time.Duration(head.TimeMs-ms) * time.Millisecond
}
