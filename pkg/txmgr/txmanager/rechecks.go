package txmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// rechecksAtOnce is how many pending transactions are looked at anew at a time, besides those that something urgent
// waits for.
const rechecksAtOnce = 4

// rechecks are pending transactions whose jobs are looked at anew. None waits for another one's slow call: a pending
// transaction is left out of the passes that come while it is pressed.
type rechecks struct {
	beside  bool // passes do not wait for them
	running sync.WaitGroup

	mu    sync.Mutex
	busy  map[int64]bool // by intent: whether it counts towards the most at a time
	freed chan struct{}  // closed when one of these ends
	wrong []error        // since somebody asked
}

// err returns, once, what went wrong.
func (p *rechecks) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.wrong...)
	p.wrong = nil
	return err
}

func (p *rechecks) has(intent int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, busy := p.busy[intent]
	return busy
}

// enter begins the look at an intent, or returns what is closed when another has ended.
func (p *rechecks) enter(intent int64, urgent bool) (full <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := 0
	for _, counts := range p.busy {
		if counts {
			taken++
		}
	}
	if p.freed == nil {
		p.busy, p.freed = map[int64]bool{}, make(chan struct{})
	}
	if !urgent && taken >= rechecksAtOnce {
		return p.freed
	}
	p.busy[intent] = !urgent
	return nil
}

func (p *rechecks) leave(intent int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, intent)
	close(p.freed)
	p.freed = make(chan struct{})
	if err != nil && txm.Refused(err) == "" { // what moved meanwhile is seen by the next pass
		p.wrong = append(p.wrong, err)
	}
}

// urgentFirst orders looks by the lanes they are pressed for.
func urgentFirst(looks []*look) []*look {
	return slices.SortedStableFunc(slices.Values(looks), func(a, b *look) int {
		la, lb := a.observed.For(a.PendingTx), b.observed.For(b.PendingTx)
		switch {
		case txm.Above(la, lb):
			return -1
		case txm.Above(lb, la):
			return 1
		}
		return 0
	})
}

// aside replaces a pending transaction, whose job is looked at anew for it, beside the pass.
func (c *confirm) aside(ctx context.Context, l *look,
	renew func(context.Context, txm.PendingTx, txm.Observation) error) error {
	f, s, p := l.PendingTx, l.observed, &c.broadcast.rechecks
	if !p.beside {
		return renew(ctx, f, s)
	}
	if !c.enter(ctx, l) {
		return nil
	}
	p.running.Go(func() {
		err := renew(ctx, f, s)
		if err != nil {
			err = fmt.Errorf("nonce %d: %w", f.Intent.Nonce, err)
		}
		p.leave(f.Intent.ID, err)
	})
	return nil
}

// enter waits until a pending transaction may be pressed. It returns false when a new head has come first: what is
// urgent is looked at again before it.
func (c *confirm) enter(ctx context.Context, l *look) bool {
	head := c.heads.Next()
	for {
		full := c.broadcast.rechecks.enter(l.Intent.ID, l.observed.For(l.PendingTx) == job.LiquidationLane)
		if full == nil {
			return true
		}
		select {
		case <-full:
		case <-head:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
