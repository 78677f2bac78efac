package txmanager

import (
	"context"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// budget is what a signer may still spend of a day's money. What is taken counts at once; what came of it is read from
// the store with every pass. It is safe for concurrent use.
type budget struct {
	duty
	limit txm.Budget
	clock func() time.Time

	mu            sync.Mutex
	spent, earned txm.ByLane // wei
	// short are the lanes that had too little left for a transaction, since it was last counted.
	short  map[job.Lane]bool
	looked time.Time // when what was earned and the balance were last asked for
}

// fundsFresh is for how long a signer's fees and balance are taken for what they were. Fees are booked from final
// blocks, and so many of them in a day that they are not summed up with every pass.
const fundsFresh = 30 * time.Second

// count reads what was spent and, now and then, what was earned and what is left, and reports it.
func (b *budget) count(ctx context.Context) error {
	spent, err := b.store.Spent(ctx, b.signer)
	if err != nil {
		return err
	}
	if err := b.look(ctx, spent); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent, b.short = spent, map[job.Lane]bool{}
	b.metrics.money(b.signer, b.limit, spent, b.earned)
	return nil
}

// look reads what was earned, and the balance for people. A balance that no node gives is none to stop for.
func (b *budget) look(ctx context.Context, spent txm.ByLane) error {
	now := b.clock()
	if !b.looked.IsZero() && now.Sub(b.looked) < fundsFresh && now.After(b.looked.Add(-fundsFresh)) {
		return nil
	}
	earned, err := b.store.Earned(ctx, b.signer)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.earned, b.looked = earned, now
	b.mu.Unlock()
	balance, err := b.node.Balance(ctx, b.signer)
	if err != nil {
		b.log.Debug().Err(err).Msg("what the signer has is not known anew")
		return nil
	}
	b.metrics.balance(b.signer, balance, spent.Sum(), earned.Sum())
	return nil
}

// take sets wei aside for a lane, and reports false if the lane may not spend so many.
func (b *budget) take(lane job.Lane, wei uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.limit.Allows(lane, chain.U64(wei), b.spent, b.earned) {
		return false
	}
	if b.spent == nil {
		b.spent = txm.ByLane{}
	}
	b.spent.Add(lane, chain.U64(wei))
	return true
}

// lacks notes that a lane had too little for a transaction.
func (b *budget) lacks(lane job.Lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.short == nil {
		b.short = map[job.Lane]bool{}
	}
	b.short[lane] = true
}

// isShort reports whether a lane had too little for a transaction, since it was last counted what it has.
func (b *budget) isShort(lane job.Lane) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.short[lane]
}

// giveBack gives back what was set aside for what is certainly not stored.
func (b *budget) giveBack(aside txm.ByLane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for lane, wei := range aside {
		b.spent[lane] = b.spent[lane].Sub(b.spent[lane].Min(wei))
	}
}
