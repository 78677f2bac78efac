package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/chain"
)

var signer = chain.Address{1}

// scripted is a store whose answers a test writes.
type scripted struct {
	renewals atomic.Int32
	renew    func(ctx context.Context, nth int) error
	acquire  func(ctx context.Context) error
}

func (s *scripted) Acquire(ctx context.Context, signer chain.Address, owner Owner, _ time.Duration) (Fence, error) {
	if s.acquire != nil {
		if err := s.acquire(ctx); err != nil {
			return Fence{}, err
		}
	}
	return Fence{Signer: signer, Owner: owner.ID, Token: 7}, nil
}

func (s *scripted) Renew(ctx context.Context, _ Fence, _ time.Duration) error {
	return s.renew(ctx, int(s.renewals.Add(1)))
}

func (s *scripted) Release(context.Context, Fence) error { return nil }

func acquired(t *testing.T, s *scripted) *Term {
	t.Helper()
	term, err := Acquire(t.Context(), s, signer, NewOwner("a"), DefaultTTL, NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// NON-5: renewed at a third of the TTL, for as long as it is wanted.
func TestKeepRenewsAtAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{renew: func(context.Context, int) error { return nil }}
		term := acquired(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 10*DefaultTTL)
		defer cancel()
		if err := term.Keep(ctx); err != nil {
			t.Fatal(err)
		}
		if n := s.renewals.Load(); n != 30 {
			t.Errorf("%d renewals in 10 TTLs, want 30", n)
		}
		if err := term.Check("send"); err != nil {
			t.Error(err)
		}
	})
}

func TestKeepAsksAgainUntilTheDeadline(t *testing.T) {
	for name, answer := range map[string]func(ctx context.Context) error{
		"refuses": func(context.Context) error { return errors.New("connection refused") },
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				term := acquired(t, &scripted{renew: func(ctx context.Context, _ int) error { return answer(ctx) }})
				err := term.Keep(t.Context())
				if !Lost(err) {
					t.Fatalf("got %v, want a lost term", err)
				}
				if waited := time.Since(start); waited != trusted(DefaultTTL) {
					t.Errorf("given up after %s, want %s", waited, trusted(DefaultTTL))
				}
				if err := term.Check("send"); !Lost(err) {
					t.Errorf("past the deadline Check says %v", err)
				}
			})
		})
	}
}

func TestKeepSurvivesAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := acquired(t, &scripted{renew: func(_ context.Context, nth int) error {
			if nth < 4 {
				return errors.New("connection refused")
			}
			return nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*DefaultTTL)
		defer cancel()
		if err := term.Keep(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestKeepEndsWhenTheDatabaseSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &scripted{}
		s.renew = func(context.Context, int) error { return fmt.Errorf("renewing: %w", &LostError{Op: "renew"}) }
		if err := acquired(t, s).Keep(t.Context()); !Lost(err) {
			t.Fatalf("got %v", err)
		}
		if over := time.Since(start); over != DefaultTTL/3 {
			t.Errorf("noticed after %s, want the first renewal", over)
		}
	})
}

// The deadline counts from before the request: what the reply takes is taken off, and a reply past the deadline comes
// too late.
func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reply = 3 * time.Second
		s := &scripted{acquire: func(context.Context) error { return pass(reply) }}
		start := time.Now()
		term := acquired(t, s)
		if got, want := term.deadline(), start.Add(trusted(DefaultTTL)); !got.Equal(want) {
			t.Errorf("trusted until %s after the request, want %s", got.Sub(start), want.Sub(start))
		}
		s.renew = func(context.Context, int) error { return pass(trusted(DefaultTTL)) } // ignores its context
		if err := term.Keep(t.Context()); !Lost(err) {
			t.Errorf("a renewal answered past the deadline: %v", err)
		}
	})
}

// pass lets time go by, as a slow server does.
func pass(d time.Duration) error {
	<-time.After(d)
	return nil
}

func TestReleaseEndsTheTermHere(t *testing.T) {
	term := acquired(t, &scripted{})
	if err := term.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := term.Check("send"); !Lost(err) {
		t.Errorf("after the release Check says %v", err)
	}
}

// NON-12.
func TestEveryStartIsAnotherOwner(t *testing.T) {
	a, b := NewOwner("node-1"), NewOwner("node-1")
	if a.ID == b.ID || a.ID == uuid.Nil || a.Label != b.Label {
		t.Errorf("%+v and %+v", a, b)
	}
}

// NON-8, NON-11.
func TestMetricsTellResultsApart(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	for _, err := range []error{nil, &HeldError{}, fmt.Errorf("x: %w", &HeldError{}), errors.New("down"),
		&HeldError{Ahead: time.Hour}, &HeldError{Ahead: 100 * time.Millisecond}, &HeldError{Gone: true}} {
		m.acquired(err)
	}
	for _, err := range []error{nil, nil, &LostError{}, errors.New("down")} {
		m.renewed(err)
	}
	m.Rejected(fmt.Errorf("claiming: %w", &LostError{Op: "claim"}))
	m.Rejected(errors.New("down"))
	m.Rejected(nil)
	err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP fence_reject_total Writes refused because the lease had moved on, by operation.
# TYPE fence_reject_total counter
fence_reject_total{op="claim"} 1
# HELP lease_acquire_total Tries to take a lease, by result: won, held, gone (no session any more), ahead, error.
# TYPE lease_acquire_total counter
lease_acquire_total{result="ahead"} 1
lease_acquire_total{result="error"} 1
lease_acquire_total{result="gone"} 1
lease_acquire_total{result="held"} 3
lease_acquire_total{result="won"} 1
# HELP lease_renew_total Renewals of leases, by result: kept, lost, error (asked again until the lease ends).
# TYPE lease_renew_total counter
lease_renew_total{result="error"} 1
lease_renew_total{result="kept"} 2
lease_renew_total{result="lost"} 1
`))
	if err != nil {
		t.Error(err)
	}
}

func TestCheckTTL(t *testing.T) {
	for ttl, ok := range map[time.Duration]bool{
		0: false, MinTTL - 1: false, MinTTL: true, DefaultTTL: true, MaxTTL: true, MaxTTL + 1: false,
	} {
		if err := CheckTTL(ttl); (err == nil) != ok {
			t.Errorf("%s: %v", ttl, err)
		}
	}
}
