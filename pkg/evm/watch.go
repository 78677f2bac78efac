package evm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
)

// watch probes every endpoint, also those that nobody asks at the moment, until the client is closed: so that scores
// are fresh when they are needed, and excluded endpoints are taken back.
func (p *pool) watch() {
	tick := time.NewTicker(p.cfg.ProbeInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.probe(p.life)
		case <-p.life.Done():
			return
		}
	}
}

// probe asks all endpoints for their heads at once, lets them vote on an older block, and takes back those that have
// cooled down and answer well.
func (p *pool) probe(ctx context.Context) {
	all := slices.DeleteFunc(p.all(), (*endpoint).pausing)
	failures := p.greet(ctx, all)
	p.watchForks(ctx)
	p.vote(ctx)
	now := time.Now()
	p.disputes.close(now)
	for i, e := range all {
		if failures[i] == nil {
			e.mu.Lock()
			e.readmit(func(x Exclusion) bool { return x.served(now) })
			e.mu.Unlock()
		}
	}
}

// settled is how many blocks below the lowest head endpoints must agree: deeper than any fork of BSC while votes come
// in.
const settled = 32

// vote asks every endpoint that names a head for the same settled block, and excludes those that contradict a majority
// for a cool-down from then on. With two endpoints, or without a majority, nobody can tell who is right.
func (p *pool) vote(ctx context.Context) {
	voters, number := p.electorate()
	if len(voters) < 3 {
		return
	}
	hashes := make([]chain.Hash, len(voters))
	var wg sync.WaitGroup
	for i, e := range voters {
		wg.Go(func() {
			if h, err := put(ctx, e, headerAt(number)); err == nil {
				hashes[i] = h.Hash
			}
		})
	}
	wg.Wait()
	agreed := majority(hashes)
	for i, hash := range hashes {
		if !agreed.IsZero() && !hash.IsZero() && hash != agreed {
			voters[i].distrust(Everything, ReasonContradicted, fmt.Sprintf("block %d is %s, most others have %s",
				number, hash, agreed))
		}
	}
}

// electorate are the endpoints that have named a head, and a block that all of them should have.
func (p *pool) electorate() (voters []*endpoint, number uint64) {
	for _, e := range p.public {
		head := e.head()
		if head.Hash.IsZero() || head.Number < settled || e.usable(Everything) == foreign || e.pausing() {
			continue
		}
		if at := head.Number - settled; len(voters) == 0 || at < number {
			number = at
		}
		voters = append(voters, e)
	}
	return voters, number
}

// majority is the hash that more than half of the voters name, of at least three; zero if there is none. A zero vote is
// none.
func majority(votes []chain.Hash) chain.Hash {
	count, cast := map[chain.Hash]int{}, 0
	for _, v := range votes {
		if !v.IsZero() {
			count[v]++
			cast++
		}
	}
	for hash, n := range count {
		if cast >= 3 && 2*n > cast {
			return hash
		}
	}
	return chain.Hash{}
}
