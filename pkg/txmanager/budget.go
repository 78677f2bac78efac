package txmanager

import (
	"context"
	"sync"

	"perpkeeper/pkg/chain"
)

// budget is what a signer may still spend of a day's money. What is taken counts at once; what came of it is read from
// the store with every pass. It is safe for concurrent use.
type budget struct {
	signer chain.Address
	limit  uint64 // wei in 24 hours
	store  interface {
		Spent(ctx context.Context, signer chain.Address) (uint64, error)
	}

	mu    sync.Mutex
	spent uint64
}

// count reads what was spent.
func (b *budget) count(ctx context.Context) (spent uint64, err error) {
	if spent, err = b.store.Spent(ctx, b.signer); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = spent
	return spent, nil
}

// take sets wei aside, or says that there are not so many left.
func (b *budget) take(wei uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wei > b.limit-min(b.limit, b.spent) {
		return false
	}
	b.spent += wei
	return true
}

// giveBack gives back what was set aside for what is certainly not stored.
func (b *budget) giveBack(wei uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent -= min(b.spent, wei)
}
