package sender

import (
	"context"
	"sync"

	"perpkeeper/pkg/chain"
)

// purse is what a signer may still spend of a day's money. What is taken counts at once; what came of it is read from
// the store with every pass. It is safe for concurrent use.
type purse struct {
	signer chain.Address
	limit  uint64 // wei in 24 hours
	store  interface {
		Spent(ctx context.Context, signer chain.Address) (uint64, error)
	}

	mu    sync.Mutex
	spent uint64
}

// count reads what was spent.
func (p *purse) count(ctx context.Context) (spent uint64, err error) {
	if spent, err = p.store.Spent(ctx, p.signer); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent = spent
	return spent, nil
}

// take sets wei aside, or says that there are not so many left.
func (p *purse) take(wei uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wei > p.limit-min(p.limit, p.spent) {
		return false
	}
	p.spent += wei
	return true
}

// put gives back what was set aside for what is certainly not stored.
func (p *purse) put(wei uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent -= min(p.spent, wei)
}
