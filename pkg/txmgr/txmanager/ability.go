package txmanager

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// believed is for how long it is believed that a signer cannot sign. Then it gets a job again: nothing else would show
// that it can.
const believed = time.Minute

// ability is what the store was last told of whether a signer can sign, and pay for gas; nil tells it nothing. It is
// safe for concurrent use.
type ability struct {
	duty
	clock func() time.Time

	mu          sync.Mutex
	signs, pays string // why it cannot; empty while it can
	told        string
	at          time.Time
}

// note tells the store why a signer cannot sign or pay, when that changes and again while it lasts. What the store did
// not take is said again.
func (a *ability) note(ctx context.Context, change func(a *ability)) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
	why, now := cmp.Or(a.signs, a.pays), a.clock()
	if since := now.Sub(a.at); (why == "") == (a.told == "") && (why == "" || since >= 0 && since < believed/3) {
		return
	}
	if err := a.store.Unable(ctx, a.term.Fence(), why, believed); err != nil {
		a.log.Debug().Err(err).Msg("that the signer can sign, or cannot, is noted again")
		return
	}
	if (why == "") != (a.told == "") {
		a.log.Warn().Str("reason", why).Bool("able", why == "").Msg("whether the signer can sign has changed")
	}
	a.told, a.at = why, now
}
