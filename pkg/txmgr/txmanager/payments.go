package txmanager

import (
	"context"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
)

// payments knows whether full blocks have room for a payment of an account to itself. It is safe for concurrent use.
type payments struct {
	duty
	account chain.Address
	clock   func() time.Time

	mu    sync.Mutex
	pays  bool
	until time.Time // what is known is asked again after
}

// paymentsFresh is for how long an answer is used: a fork, or an account's first code, is noticed within it.
const paymentsFresh = time.Minute

// room reports whether 1 wei is to be sent to free a nonce. Where nobody answers it is: where it makes no payment it
// costs what 0 wei do, and where blocks are full nothing else would land.
func (p *payments) room(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clock().Before(p.until) {
		return p.pays
	}
	pays, err := p.node.Pays(ctx, p.account)
	if err != nil {
		p.log.Warn().Err(err).Msg("whether blocks have room for payments is not known: 1 wei is sent to free a nonce")
		return true
	}
	p.pays, p.until = pays, p.clock().Add(paymentsFresh)
	return pays
}
