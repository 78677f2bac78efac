package evm

import (
	"context"
	"sync"
	"time"
)

// softwareFresh is for how long it is believed what a node calls itself: upgrades are seen within it.
const softwareFresh = 5 * time.Minute

// forksNear are those that nodes are to be ready for by now.
func (p *pool) forksNear() (near []Fork) {
	for _, f := range p.forks {
		if !time.Now().Before(f.At.Add(-forkNotice)) {
			near = append(near, f)
		}
	}
	return near
}

// watchForks has endpoints say what software they are, while a fork is near or has come. Those that miss it are named
// before it, and come last for everything once it has come.
func (p *pool) watchForks(ctx context.Context) {
	if len(p.forksNear()) == 0 {
		return
	}
	var asking sync.WaitGroup
	for _, e := range p.public {
		asking.Go(func() { e.askSoftware(ctx) })
	}
	asking.Wait()
	now := time.Now()
	for _, e := range p.public {
		e.mu.Lock()
		fork, misses := missing(p.forks, e.software, now)
		switch {
		case !misses:
			e.readmit(func(x Exclusion) bool { return x.Reason == ReasonMissesFork })
		case now.Before(fork.At):
			e.exclude(AfterFork, ReasonMissesFork, fork.Misses(e.software))
		default:
			e.exclude(Everything, ReasonMissesFork, fork.Misses(e.software))
		}
		e.mu.Unlock()
	}
}

// askSoftware asks the node what it is, if that has not been asked for a while.
func (e *endpoint) askSoftware(ctx context.Context) {
	e.mu.Lock()
	fresh := time.Since(e.asked) < softwareFresh
	e.mu.Unlock()
	if fresh {
		return
	}
	software, err := put(ctx, e, scalar[string](methodSoftware))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked = time.Now(); err == nil {
		e.software = software
	}
}

// CheckForks asks every endpoint what software it is, where a fork is near or has come; see [EndpointStatus]. The
// client does so by itself as long as it lives.
func (c *Client) CheckForks(ctx context.Context) { c.pool.watchForks(ctx) }

// ForksNear returns the forks that nodes are to be ready for by now, from a fortnight before each on.
func (c *Client) ForksNear() []Fork { return c.pool.forksNear() }
