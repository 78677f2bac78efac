// Package noncetest is the test suite that every store of nonces must pass.
package noncetest

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
)

// Setup returns the store, the leases it is fenced by, and a registered signer that nobody has owned yet.
type Setup func(t *testing.T) (nonce.Store, lease.Store, chain.Address)

// Run puts a store through the suite. Tests run in parallel.
func Run(t *testing.T, setup Setup) {
	t.Helper()
	for name, test := range map[string]func(fixture){
		"a lease term starts at the chain's nonce":      startsAtChain,
		"a cursor never falls":                          neverFalls,
		"a store behind the chain waits for resync":     backInTime,
		"a former owner moves no cursor":                fenced,
		"a lease term may be opened more than one time": repeatable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nonces, leases, signer := setup(t)
			test(fixture{t, nonces, leases, signer})
		})
	}
}

type fixture struct {
	t      *testing.T
	nonces nonce.Store
	leases lease.Store
	signer chain.Address
}

func (b fixture) acquire(t *testing.T) lease.Fence {
	t.Helper()
	f, err := b.leases.Acquire(t.Context(), b.signer, lease.NewOwner("node"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (b fixture) takeOver(t *testing.T, f lease.Fence, latest, want uint64) {
	t.Helper()
	c, err := b.nonces.TakeOver(t.Context(), f, latest)
	if err != nil {
		t.Fatal(err)
	}
	if c.Promise() != want || c.Next != want || len(c.Released) != 0 {
		t.Fatalf("with the chain at %d the cursor is %+v, want %d", latest, c, want)
	}
}

func (b fixture) release(t *testing.T, f lease.Fence) {
	t.Helper()
	if err := b.leases.Release(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// NON-6.
func startsAtChain(b fixture) {
	t := b.t
	b.takeOver(t, b.acquire(t), 17, 17)
}

func neverFalls(b fixture) {
	t := b.t
	f := b.acquire(t)
	b.takeOver(t, f, 17, 17)
	b.release(t, f)
	f = b.acquire(t)
	b.takeOver(t, f, 3, 17) // a node that lags
}

// A store that knows less than the chain gives out nothing until it was resynced, and then nothing of what was given
// before counts.
func backInTime(b fixture) {
	t := b.t
	f := b.acquire(t)
	b.takeOver(t, f, 17, 17)
	if _, err := b.nonces.TakeOver(t.Context(), f, 20); !nonce.Behind(err) {
		t.Fatalf("got %v, want to hear that the store is behind", err)
	}
	b.takeOver(t, f, 17, 17)
	resyncer, ok := b.nonces.(nonce.Resyncer)
	if !ok {
		t.Fatal("the store cannot be resynced")
	}
	for _, moving := range []nonce.ChainNonces{{Finalized: 19, Latest: 20, Pending: 20},
		{Finalized: 20, Latest: 20, Pending: 21}} {
		if _, err := resyncer.Resync(t.Context(), b.signer, moving); err == nil {
			t.Errorf("resynced while transactions are under way: %+v", moving)
		}
	}
	c, err := resyncer.Resync(t.Context(), b.signer, nonce.ChainNonces{Finalized: 20, Latest: 20, Pending: 20})
	if err != nil || c.Next != 20 {
		t.Fatalf("resynced to %+v, %v", c, err)
	}
	if _, err := b.nonces.TakeOver(t.Context(), f, 20); !lease.Lost(err) {
		t.Errorf("got %v, want the lease term of before to be over", err)
	}
	next := b.acquire(t)
	if next.Token < f.Token+1000 {
		t.Errorf("token went from %d to %d: a ghost of the lost time may have had more", f.Token, next.Token)
	}
	b.takeOver(t, next, 20, 20)
	b.takeOver(t, next, 3, 20)
}

// NON-2.
func fenced(b fixture) {
	t := b.t
	old := b.acquire(t)
	b.release(t, old)
	f := b.acquire(t)
	if _, err := b.nonces.TakeOver(t.Context(), old, 99); !lease.Lost(err) {
		t.Fatalf("got %v, want a lost lease term", err)
	}
	b.takeOver(t, f, 0, 0)
}

// NON-3.
func repeatable(b fixture) {
	t := b.t
	f := b.acquire(t)
	b.takeOver(t, f, 5, 5)
	b.takeOver(t, f, 5, 5)
}
