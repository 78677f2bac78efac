package txmanager

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/ttl"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// retries has jobs that failed for a cause that may pass tried again, at the time that stands with their end (LIQ-10).
// Its queue leads while the signer's lease is held here, and learns from the store what is to be done: a restart, or
// another owner, changes no time. How often a job has failed, and when it is given up, stands in the store as well, and
// not in the queue (docs/adr/0030). Its passes are made by one goroutine.
type retries struct {
	signer chain.Address
	store  txm.Again
	clock  func() time.Time // compared with itself alone
	chain  func() uint64    // the chain's time (ms)
	queued func()           // called when an attempt was queued
	log    zerolog.Logger

	term    *lease.Term
	queue   *ttl.Queue[int64] // by intent; expiries are on the chain's clock
	known   map[int64]uint64  // when each of the queue is due (ms)
	due     []ttl.Try[int64]  // whose time has come in this pass
	ended   atomic.Bool       // an attempt has ended since the store was last asked
	learned time.Time
}

// retryPause is how long after a failure of the store a retry is asked for again.
const retryPause = 500 * time.Millisecond

func newRetries(signer chain.Address, p Parts, queued func()) *retries {
	r := &retries{signer: signer, store: p.Intents, clock: p.Heads.Clock, chain: p.Heads.Time, queued: queued,
		log: p.Log, known: map[int64]uint64{}}
	r.queue = ttl.New(ttl.Options[int64]{
		Config: ttl.Config{RetryDelay: retryPause, IdleDelay: idle},
		Clock:  func() time.Duration { return time.Duration(r.chain()) * time.Millisecond },
		Callback: func(t ttl.Try[int64]) error {
			r.due = append(r.due, t)
			return nil // reported when the store has answered
		},
		Metrics: p.Metrics.queues.Watch("retries " + signer.Hex()),
	})
	return r
}

func (r *retries) begin(t *lease.Term) {
	r.term = t
	r.ended.Store(true)
	r.queue.Lead(true)
}

// rest is for the time without a lease. What was known is another's to change.
func (r *retries) rest() {
	r.queue.Lead(false)
	for intent := range r.known {
		r.forget(intent)
	}
}

// pass stores the next attempts of the jobs whose time has come.
func (r *retries) pass(ctx context.Context) error {
	if err := r.learn(ctx); err != nil {
		return err
	}
	r.due = r.due[:0]
	r.queue.Turn()
	var problems []error
	for _, t := range r.due {
		err := r.retry(ctx, t)
		if lease.Lost(err) {
			return err
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// learn brings the queue up to what the store knows: attempts that failed since, times that an operator has moved, and
// jobs that a planner has found again meanwhile.
func (r *retries) learn(ctx context.Context) error {
	if now := r.clock(); !r.ended.Swap(false) && now.Sub(r.learned) < idle {
		return nil
	}
	failed, err := r.store.Failed(ctx, r.signer)
	if err != nil {
		r.ended.Store(true)
		return err
	}
	r.learned = r.clock()
	stored := map[int64]bool{}
	for _, f := range failed {
		stored[f.Intent] = true
		if at, known := r.known[f.Intent]; !known || at != f.AtMs {
			r.known[f.Intent] = f.AtMs
			r.queue.Set(f.Intent, time.Duration(f.AtMs)*time.Millisecond)
		}
	}
	for intent := range r.known {
		if !stored[intent] {
			r.forget(intent)
		}
	}
	return nil
}

func (r *retries) forget(intent int64) {
	delete(r.known, intent)
	r.queue.Remove(intent)
}

// retry stores the next attempt. One that is stored already is as good.
func (r *retries) retry(ctx context.Context, t ttl.Try[int64]) error {
	err := r.store.Retry(ctx, r.term.Fence(), t.Key())
	if err != nil && txm.Refused(err) == "" {
		t.Retry(err)
		return err
	}
	now := r.chain()
	late := now - min(now, r.known[t.Key()])
	delete(r.known, t.Key())
	t.Remove()
	if err == nil {
		r.log.Info().Int64("after", t.Key()).Uint64("late_ms", late).Msg("tried again after a failure")
		r.queued()
	}
	return nil
}
