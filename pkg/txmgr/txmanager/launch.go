package txmanager

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// launches are first broadcasts whose answers have not come yet.
type launches struct {
	// beside is true when whoever launches does not wait for the answers; failed is called when a launch has failed.
	beside  bool
	failed  func()
	running sync.WaitGroup

	mu    sync.Mutex
	wrong []error // since somebody asked
}

// launch broadcasts what was just stored. The transactions go out at once: nodes sort them by nonce. Nothing waits for
// the answers, for which a slow node may take longer than a block: they are noted when they come. Until then the next
// tasks may get their nonces, as they do where several are claimed at once.
func (b *broadcast) launch(ctx context.Context, tasks []*Task) {
	l := &b.launches
	for _, t := range tasks {
		l.running.Go(func() {
			if err := b.send(ctx, t.Intent, t.Tx); err != nil {
				l.mu.Lock()
				l.wrong = append(l.wrong, err)
				l.mu.Unlock()
				l.failed()
			}
		})
	}
	if l.beside {
		runtime.Gosched() // they go first, before the next look at the queue
		return
	}
	l.running.Wait()
}

// err returns, once, what went wrong: the lease term is over, or an answer could not be noted.
func (l *launches) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := errors.Join(l.wrong...)
	l.wrong = nil
	return err
}
