package txmanager

import (
	"context"
	"time"

	"perpkeeper/pkg/txmgr/txm"
)

// upkeep is what a drain does beside its tasks.
type upkeep struct {
	numbers nonces
	funds   interface {
		count(ctx context.Context) error // reads what the signer has spent
	}
	idle      func(ctx context.Context) error // called when all else is counted
	counted   bool                            // the budget knows what was spent, or less than may be
	called    func() bool                     // whether the queue is to be looked at again already
	accounted time.Time                       // when was last counted
}

// nonces are a signer's, in one lease term.
type nonces interface {
	// reconcile compares them with the chain, if that has not been done.
	reconcile(ctx context.Context) error
	// housekeeping is called when nothing is left to take.
	housekeeping(ctx context.Context) error
}

// accountingWaits reports whether nothing need be counted now: a job waits for it, or nothing was taken since it was
// done. It waits as long as a loop rests at most, whatever happens.
func (d *drain) accountingWaits(took bool) bool {
	since := d.clock().Sub(d.accounted)
	return since >= 0 && since < idle && (!took || d.called())
}

// account counts what is queued and what the signer has spent.
func (d *drain) account(ctx context.Context) error {
	depth, err := d.store.Depth(ctx, d.signer)
	if err != nil {
		return err
	}
	if err := d.funds.count(ctx); err != nil {
		return err
	}
	if err := d.idle(ctx); err != nil {
		return err
	}
	d.metrics.queueDepth.WithLabelValues(d.signer.Hex()).Set(float64(depth))
	d.counted, d.accounted = true, d.clock()
	return nil
}

// slots is how many transactions more may be claimed.
type slots struct {
	batch int // the most tasks that are looked at side by side
	// free counts them by the store: those open to all, and those of the liquidations' lane.
	free      func(ctx context.Context) (all, urgent int, err error)
	slotsFull bool // a claim was refused because too many transactions are pending
	// held is why the nodes take nothing more of the signer, or empty.
	held    func() string
	waiting *waiting // told which tasks wait for what is in flight
}

// wait notes that tasks could not go on, if that is for what is in flight.
func (p *slots) wait(tasks []*Task, open bool) {
	if len(tasks) == 0 {
		return
	}
	if open || !p.slotsFull && p.held() == "" {
		tasks = nil
	}
	p.waiting.set(tasks)
}

// freeSlots is which tasks are worth looking at, and how many. After a claim was refused for want of slots they are no
// more than there are slots, and only urgent ones where no others find any, so that nodes are not asked at every head
// about jobs that cannot be sent; otherwise nobody counts before a claim.
func (p *slots) freeSlots(ctx context.Context) (txm.Pick, error) {
	if !p.slotsFull {
		return txm.Pick{Limit: p.batch}, nil
	}
	all, urgent, err := p.free(ctx)
	switch {
	case err != nil:
		return txm.Pick{}, err
	case all > 0:
		p.slotsFull = false
		return txm.Pick{Limit: min(all, p.batch)}, nil
	}
	return txm.Pick{Limit: max(0, min(urgent, p.batch)), Urgent: true}, nil
}
