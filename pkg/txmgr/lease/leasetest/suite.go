// Package leasetest is the test suite that every store of leases must pass.
package leasetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/lease"
)

// The suite's leases: long ones do not end during a test, short ones are waited for.
const (
	long  = time.Minute
	short = 150 * time.Millisecond
)

// Setup returns a store and a registered signer that nobody has owned yet.
type Setup func(t *testing.T) (lease.Store, chain.Address)

// Run puts a store through the suite. Tests run in parallel.
func Run(t *testing.T, setup Setup) {
	t.Helper()
	for name, test := range map[string]func(fixture){
		"one owner":                        oneOwner,
		"own lease is kept":                repeat,
		"release lets the next in at once": release,
		"expiry lets the next in":          expiry,
		"a late owner is a new term":       returning,
		"renewal raises nobody":            noResurrection,
		"a crowd has one winner a round":   crowd,
		"an unknown signer is an error":    unknown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, signer := setup(t)
			test(fixture{t, store, signer, lease.NewOwner("alice"), lease.NewOwner("bob")})
		})
	}
}

// fixture is what one test works with.
type fixture struct {
	t          *testing.T
	store      lease.Store
	signer     chain.Address
	alice, bob lease.Owner
}

func (b fixture) take(t *testing.T, o lease.Owner, ttl time.Duration) lease.Fence {
	t.Helper()
	f, err := b.store.Acquire(t.Context(), b.signer, o, ttl)
	if err != nil {
		t.Fatalf("%s: %v", o.Label, err)
	}
	if f.Signer != b.signer || f.Owner != o.ID {
		t.Fatalf("%s got the fence %+v", o.Label, f)
	}
	return f
}

func (b fixture) refused(t *testing.T, o lease.Owner) (holder string, token int64) {
	t.Helper()
	_, err := b.store.Acquire(t.Context(), b.signer, o, long)
	held, is := errors.AsType[*lease.HeldError](err)
	if !is {
		t.Fatalf("%s: got %v, want an error that says the lease is held", o.Label, err)
	}
	return held.Holder, held.Token
}

func (b fixture) lost(t *testing.T, f lease.Fence) {
	t.Helper()
	if err := b.store.Renew(t.Context(), f, long); !lease.Lost(err) {
		t.Fatalf("renewing under token %d: got %v, want a lost term", f.Token, err)
	}
}

// NON-1.
func oneOwner(b fixture) {
	t := b.t
	f := b.take(t, b.alice, long)
	if f.Token != 1 {
		t.Errorf("the first term has token %d", f.Token)
	}
	if holder, token := b.refused(t, b.bob); holder != "alice" || token != 1 {
		t.Errorf("bob's error names %s under token %d", holder, token)
	}
	if err := b.store.Renew(t.Context(), f, long); err != nil {
		t.Error(err)
	}
}

// NON-3: a repeated acquire, as after a lost reply, is the same term, and its time counts from the repetition.
func repeat(b fixture) {
	t := b.t
	first := b.take(t, b.alice, long)
	if again := b.take(t, b.alice, short); again != first {
		t.Errorf("%+v became %+v", first, again)
	}
	if f := b.await(t, b.bob); f.Token != first.Token+1 {
		t.Errorf("token went from %d to %d", first.Token, f.Token)
	}
}

// NON-2, S9: released is not forgotten, and the old term cannot end the new one.
func release(b fixture) {
	t := b.t
	a := b.take(t, b.alice, long)
	if err := b.store.Release(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	f := b.take(t, b.bob, long)
	if f.Token != a.Token+1 {
		t.Errorf("token went from %d to %d", a.Token, f.Token)
	}
	b.lost(t, a)
	if err := b.store.Release(t.Context(), a); err != nil {
		t.Errorf("releasing a term that is over: %v", err)
	}
	b.refused(t, b.alice)
}

// NON-2, S11: a lease ends by itself, whatever its owner believes.
func expiry(b fixture) {
	t := b.t
	a := b.take(t, b.alice, short)
	f := b.await(t, b.bob)
	if f.Token != a.Token+1 {
		t.Errorf("token went from %d to %d", a.Token, f.Token)
	}
	b.lost(t, a)
	b.refused(t, b.alice)
}

// await acquires as soon as the lease is free.
func (b fixture) await(t *testing.T, o lease.Owner) lease.Fence {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(short / 10)
	defer tick.Stop()
	for {
		f, err := b.store.Acquire(ctx, b.signer, o, long)
		if err == nil {
			return f
		}
		if !lease.Held(err) {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the lease did not end")
		}
	}
}

// S7: the same owner, after its lease ran out, is fenced from its own past.
func returning(b fixture) {
	t := b.t
	before := b.take(t, b.alice, short)
	<-time.After(2 * short)
	after := b.take(t, b.alice, long)
	if after.Token != before.Token+1 {
		t.Errorf("token went from %d to %d", before.Token, after.Token)
	}
	b.lost(t, before)
}

// S12: a renewal extends its own term or nothing.
func noResurrection(b fixture) {
	t := b.t
	f := b.take(t, b.alice, short)
	<-time.After(2 * short)
	b.lost(t, f)
	if next := b.take(t, b.bob, long); next.Token != f.Token+1 {
		t.Errorf("token went from %d to %d", f.Token, next.Token)
	}
}

// NON-1, NON-14: whoever wins, one wins, and the tokens have no gap and no repetition.
func crowd(b fixture) {
	t := b.t
	const rounds, nodes = 10, 8
	for round := range int64(rounds) {
		var winner atomic.Pointer[lease.Fence]
		var group sync.WaitGroup
		for range nodes {
			group.Go(func() {
				f, err := b.store.Acquire(t.Context(), b.signer, lease.NewOwner("node"), long)
				switch {
				case err == nil && !winner.CompareAndSwap(nil, &f):
					t.Error("two winners")
				case err != nil && !lease.Held(err):
					t.Error(err)
				}
			})
		}
		group.Wait()
		f := winner.Load()
		if f == nil || f.Token != round+1 {
			t.Fatalf("round %d was won by %+v", round, f)
		}
		if err := b.store.Release(t.Context(), *f); err != nil {
			t.Fatal(err)
		}
	}
}

func unknown(b fixture) {
	t := b.t
	_, err := b.store.Acquire(t.Context(), chain.Address{0xff, 0xff}, b.alice, long)
	if err == nil || lease.Held(err) || lease.Lost(err) {
		t.Errorf("got %v, want an error that says the signer is unknown", err)
	}
}
