package ledger

import (
	"context"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// Unreported implements txm.Reports.
func (l *Ledger) Unreported(_ context.Context, signer chain.Address, limit int) ([]txm.Ended, error) {
	return ask(l, "unreported", func() (ended []txm.Ended, err error) {
		a := l.accounts[signer]
		if a == nil {
			return nil, nil
		}
		for _, i := range a.unreported[:min(limit, len(a.unreported))] {
			ended = append(ended, txm.Ended{Intent: l.read(i), EndedAt: i.endedAt, Receipt: copied(i.receipt)})
		}
		return ended, nil
	})
}

// Reported implements txm.Reports.
func (l *Ledger) Reported(_ context.Context, f lease.Fence, ids []int64) error {
	return l.fenced("report", f, func(a *account) bool {
		changed := false
		for _, id := range ids {
			i := l.intents[id]
			if i == nil || i.Signer != f.Signer || !i.State.Terminal() {
				continue
			}
			changed = true
			if at, found := slices.BinarySearchFunc(a.unreported, i, byID); found {
				a.unreported = slices.Delete(a.unreported, at, at+1)
			}
		}
		return changed
	})
}

// Listener is notified of intents that were queued.
type Listener struct {
	ledger *Ledger
	wake   chan struct{} // holds one token while there is news
}

// Listener returns a listener that is notified of what is queued from now on.
func (l *Ledger) Listener() *Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	listener := &Listener{ledger: l, wake: make(chan struct{}, 1)}
	l.listeners[listener] = true
	return listener
}

// notify wakes whoever listens.
func (l *Ledger) notify() {
	for listener := range l.listeners {
		select {
		case listener.wake <- struct{}{}:
		default: // it has not taken the last one yet, which stands for this one too
		}
	}
}

// WaitChange waits until something was queued since the last wait, or ctx ends, which is the error.
func (h *Listener) WaitChange(ctx context.Context) error {
	select {
	case <-h.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the listening.
func (h *Listener) Close() {
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	delete(h.ledger.listeners, h)
}
