package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
)

// Acquire implements lease.Store.
func (l *Ledger) Acquire(_ context.Context, signer chain.Address, owner lease.Owner, ttl time.Duration) (lease.Fence,
	error) {
	return ask(l, func() (lease.Fence, error) {
		a, known := l.accounts[signer]
		if !known {
			return lease.Fence{}, fmt.Errorf("signer %s is not registered", signer)
		}
		now := l.clock()
		free, own := !a.expires.After(now), a.owner.ID == owner.ID
		if !free && !own {
			return lease.Fence{}, &lease.HeldError{Signer: signer, Holder: a.owner.Label, Token: a.token}
		}
		if free {
			a.token++
		}
		a.owner, a.expires = owner, now.Add(ttl)
		return lease.Fence{Signer: signer, Owner: owner.ID, Token: a.token}, nil
	})
}

// Renew implements lease.Store.
func (l *Ledger) Renew(_ context.Context, f lease.Fence, ttl time.Duration) error {
	return l.fenced("renew", f, func(a *account) bool {
		a.expires = l.clock().Add(ttl)
		return true
	})
}

// Release implements lease.Store.
func (l *Ledger) Release(_ context.Context, f lease.Fence) error {
	return l.do(func() error {
		if a := l.held(f); a != nil {
			a.expires = l.clock()
		}
		return nil
	})
}

// Gone says that the holder of a signer's lease is dead: its lease may pass on a [lease.Moment] later.
func (l *Ledger) Gone(signer chain.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, end := l.accounts[signer], l.clock().Add(lease.Moment); a != nil && a.expires.After(end) {
		a.expires = end
	}
}

// TakeOver implements nonce.Store.
func (l *Ledger) TakeOver(_ context.Context, f lease.Fence, latest uint64) (nonce.Cursor, error) {
	return ask(l, func() (nonce.Cursor, error) {
		a := l.held(f)
		if a == nil {
			return nonce.Cursor{}, &lease.LostError{Fence: f, Op: "take_over"}
		}
		stored := nonce.Cursor{Next: a.next}
		if used := a.next > 0 || len(a.taken) > 0; used && latest > a.next {
			return nonce.Cursor{}, fmt.Errorf("taking over signer %s: %w", f.Signer, &nonce.BehindError{
				Signer: f.Signer, Why: fmt.Sprintf(
					"the chain is at nonce %d, and only those below %d were given out here", latest, a.next),
			})
		}
		cursor := nonce.Begin(stored, latest)
		a.next = cursor.Next
		return cursor, nil
	})
}

// tokenLeap is by how much a resync raises the token, as in pkg/pg.
const tokenLeap = 1 << 20

// Resync implements nonce.Resyncer.
func (l *Ledger) Resync(_ context.Context, signer chain.Address, seen nonce.ChainNonces) (nonce.Cursor, error) {
	return ask(l, func() (nonce.Cursor, error) {
		if err := seen.Settled(); err != nil {
			return nonce.Cursor{}, fmt.Errorf("resyncing signer %s: %w", signer, err)
		}
		a, known := l.accounts[signer]
		if !known {
			return nonce.Cursor{}, fmt.Errorf("resyncing signer %s: it is not registered", signer)
		}
		a.owner, a.expires = lease.Owner{ID: uuid.Nil, Label: "resync"}, time.Time{}
		a.token += tokenLeap
		a.next, a.expectedBelow = max(a.next, seen.Latest), seen.Latest
		a.paused, a.pausedFor = false, ""
		return nonce.Cursor{Next: a.next}, nil
	})
}
