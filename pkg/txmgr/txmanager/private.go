package txmanager

import (
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// Private is what private endpoints are used for.
type Private struct {
	// Endpoints is true when there are private endpoints: they are given every transaction.
	Endpoints bool
	// Only are the lanes whose transactions the public nodes are not given before their deadline.
	Only []job.Lane
	// Deadline is how long after its first broadcast a job's transactions go to the public nodes as well.
	Deadline time.Duration
}

// privacy keeps the transactions of jobs from the public nodes for their time. It is of one lease term: an heir, which
// does not know when the time began, begins it anew. It is safe for concurrent use.
//
// Not guaranteed: what relays do with a transaction is not in our hands, and the call it makes was simulated by the
// public endpoints before.
type privacy struct {
	cfg   Private
	clock func() time.Time

	mu    sync.Mutex
	until map[int64]time.Time // by intent
}

// left is for how much longer a transaction is for the private endpoints alone, 0 if it is for all. The first
// transaction of an intent begins its time. What only frees a nonce has nothing to hide, and is to land by any way.
func (p *privacy) left(i txm.Intent, tx txm.SignedTx) time.Duration {
	_, known := job.Describe(i.Job.Kind)
	if !known || !slices.Contains(p.cfg.Only, i.Job.Kind.Lane()) || tx.Gas == txm.EmptyGas {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	until, begun := p.until[i.ID]
	if !begun {
		if p.until == nil {
			p.until = map[int64]time.Time{}
		}
		until = p.clock().Add(p.cfg.Deadline)
		p.until[i.ID] = until
	}
	return max(until.Sub(p.clock()), 0)
}

// over reports whether the time of an intent has begun and is over.
func (p *privacy) over(intent int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, begun := p.until[intent]
	return begun && !p.clock().Before(until)
}

// keep forgets whatever is not among the intents, and is not as young as one that has come since these were listed.
func (p *privacy) keep(intents map[int64]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, until := range p.until {
		if !intents[id] && p.clock().After(until.Add(time.Minute)) {
			delete(p.until, id)
		}
	}
}
