package evm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
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

// watchForks has endpoints say what software they are, while a fork is near or has come, and names those that miss it:
// before it by their software, and from then on by their heads.
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
		follows := !now.Before(fork.At) && e.vitals.head.TimeMs >= uint64(fork.At.UnixMilli())
		if misses && !follows {
			e.exclude(AfterFork, ReasonMissesFork, fork.Misses(e.software))
		} else {
			e.readmit(func(x Exclusion) bool { return x.Reason == ReasonMissesFork })
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

// late are the voters whose software does not know a fork that has come.
func (p *pool) late(voters []*endpoint) map[*endpoint]Fork {
	late := map[*endpoint]Fork{}
	for _, e := range voters {
		e.mu.Lock()
		if fork, is := missing(p.forks, e.software, time.Now()); is && !time.Now().Before(fork.At) {
			late[e] = fork
		}
		e.mu.Unlock()
	}
	return late
}

// leftBehind excludes those that a fork has left on a branch of their own: where the others are of one mind about a
// block after it.
func (p *pool) leftBehind(voters []*endpoint, late map[*endpoint]Fork, hashes []chain.Hash, times []uint64,
	number uint64) {
	var agreed chain.Hash
	for i, e := range voters {
		if _, is := late[e]; is || hashes[i].IsZero() {
			continue
		}
		if !agreed.IsZero() && hashes[i] != agreed {
			return
		}
		agreed = hashes[i]
	}
	for i, e := range voters {
		fork, is := late[e]
		if is && !agreed.IsZero() && !hashes[i].IsZero() && hashes[i] != agreed &&
			times[i] >= uint64(fork.At.UnixMilli()) {
			e.distrust(Everything, ReasonContradicted, fmt.Sprintf("block %d is %s, others have %s: %s", number,
				hashes[i], agreed, fork.Misses(e.status().Software)))
		}
	}
}
