package txmanager

import (
	"context"
	"sync"

	"perpkeeper/pkg/chain"
)

// roster are the workers of this process, to be woken when something was queued for their signers. It is safe for
// concurrent use.
type roster struct {
	mu      sync.Mutex
	workers map[chain.Address]*worker
}

// join adds a worker until leave is called.
func (r *roster) join(w *worker) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers[w.key.Address()] = w
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.workers[w.key.Address()] == w { // a successor may have come first
			delete(r.workers, w.key.Address())
		}
	}
}

// wake wakes the worker of a signer, if it is here.
func (r *roster) wake(signer chain.Address) {
	if w := r.of(signer); w != nil {
		signal(w.queued)
	}
}

// of is the worker of a signer, nil if it is not here.
func (r *roster) of(signer chain.Address) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers[signer]
}

// follow wakes every worker when any process has queued something, until ctx ends. That somebody else queued it is what
// NON-10 is about.
func (r *roster) follow(ctx context.Context, waitChange func(context.Context) error) error {
	for {
		if err := waitChange(ctx); err != nil {
			return context.Cause(ctx)
		}
		r.mu.Lock()
		for _, w := range r.workers {
			signal(w.queued)
		}
		r.mu.Unlock()
	}
}
