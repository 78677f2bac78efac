package txmanager

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// retrying is a process that retries, on a clock of the chain that the test moves. It comes up leading.
func (o *queueTest) retrying(nowMs *uint64, store txm.Again, term *lease.Term) *retries {
	clock := func() uint64 { return *nowMs }
	r := newRetries(o.signer, Parts{Metrics: NewMetrics(prometheus.NewRegistry()), Log: zerolog.Nop(),
		Heads: headsAt(0, time.Now())}, func() {})
	r.store, r.chain = store, clock
	r.begin(term)
	return r
}

// failing is a store in which every attempt of one job fails at once.
type failing struct {
	txm.Again
	now     *uint64
	attempt uint32
	at      uint64
	given   bool
	tried   []uint64 // when the next attempt began (ms)
	away    bool
}

func (f *failing) fail() {
	rest := txm.After(job.Reverted, f.attempt, *f.now, time.Minute)
	f.at, f.given = rest.RetryAfterMs, rest.GivenUp
}

func (f *failing) Failed(context.Context, chain.Address) ([]txm.Failed, error) {
	if f.given {
		return nil, nil
	}
	return []txm.Failed{{Intent: int64(f.attempt + 1), AtMs: f.at}}, nil
}

func (f *failing) Retry(_ context.Context, _ lease.Fence, intent int64) error {
	if f.away {
		return errors.New("no connection")
	}
	if intent != int64(f.attempt+1) {
		return &txm.RefusedError{Op: "retry", Why: txm.Moved}
	}
	f.tried, f.attempt = append(f.tried, *f.now), f.attempt+1
	f.fail()
	return nil
}

// LIQ-10: retries come 2, 4 and 8 s after the failure, and none after the third. While the store is away they are late
// and not lost.
func TestRetriesComeAfterTwoFourAndEightSeconds(t *testing.T) {
	o := newQueueTest(t, nil)
	now := uint64(nowMs)
	store := &failing{now: &now}
	store.fail()
	r := o.retrying(&now, store, o.term)
	steps := func(until uint64) {
		for ; now < until; now += 100 {
			r.ended.Store(true) // as the end of an attempt says
			if err := r.pass(t.Context()); err != nil && !store.away {
				t.Fatal(err)
			}
		}
	}
	steps(nowMs + 60_000)
	if want := []uint64{nowMs + 2000, nowMs + 6000, nowMs + 14_000}; !slices.Equal(store.tried, want) {
		t.Errorf("tried again at %v, want %v", store.tried, want)
	}

	store = &failing{now: &now}
	store.fail()
	begun := now
	r = o.retrying(&now, store, o.term)
	store.away = true
	steps(begun + 3000)
	store.away = false
	steps(begun + 4000)
	if len(store.tried) != 1 || store.tried[0] < begun+3000 || store.tried[0] > begun+3600 {
		t.Errorf("tried again %v ms after the failure, the store having been away until 3000", store.tried)
	}
}

// LIQ-10, NON-8: a restart between failure and retry, also by another process, changes no time; of two that both lead
// for a moment, one retries.
func TestRetriesOutliveTheirProcess(t *testing.T) {
	o := newQueueTest(t, nil)
	now := uint64(nowMs)
	intents := txstore.NewIntents(o.db)
	o.queue(t, "a job")
	heads, err := intents.Heads(t.Context(), o.signer, txm.Pick{Limit: 1})
	if err != nil || len(heads) != 1 {
		t.Fatal(heads, err)
	}
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Reverted}, Rest: txm.After(job.Reverted, 0, now, time.Minute)}
	if err := intents.Skip(t.Context(), o.term.Fence(), heads[0].ID, end); err != nil {
		t.Fatal(err)
	}
	depth := func() int {
		t.Helper()
		n, err := intents.Depth(t.Context(), o.signer)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	mustPass := func(r *retries) {
		t.Helper()
		if err := r.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	former := o.retrying(&now, intents, o.term)
	now += 1999
	if mustPass(former); depth() != 0 {
		t.Fatal("tried again too early")
	}
	if err := o.term.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	heir, err := lease.Acquire(t.Context(), txstore.NewLeases(o.db), o.signer, lease.NewOwner("heir"), time.Minute,
		o.metrics.Leases)
	if err != nil {
		t.Fatal(err)
	}
	next := o.retrying(&now, intents, heir)
	if mustPass(next); depth() != 0 {
		t.Fatal("the heir was too early")
	}
	now++
	if err := former.pass(t.Context()); !lease.Lost(err) || depth() != 0 {
		t.Fatalf("the former owner retried: %v", err)
	}
	mustPass(next)
	mustPass(o.retrying(&now, intents, heir))
	if got := depth(); got != 1 {
		t.Fatalf("%d attempts after the retry", got)
	}
	if heads, err = intents.Heads(t.Context(), o.signer, txm.Pick{Limit: 1}); err != nil || heads[0].Attempt != 2 ||
		heads[0].Tries != 1 {
		t.Errorf("%+v, %v", heads, err)
	}
}

// TTL-6: the queue of a signer leads with its lease.
func TestRetriesFollowTheLease(t *testing.T) {
	o := newQueueTest(t, nil)
	now := uint64(nowMs)
	store := &failing{now: &now}
	store.fail()
	r := o.retrying(&now, store, o.term)
	if err := r.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.queue.Stats(); got.Waiting != 1 {
		t.Errorf("%+v while one waits", got)
	}
	r.rest()
	now += 60_000
	if r.queue.Turn(); len(r.due) != 0 || len(store.tried) != 0 {
		t.Error("retries are made without a lease")
	}
	r.begin(o.term)
	if err := r.pass(t.Context()); err != nil || len(store.tried) != 1 {
		t.Errorf("%v after the lease came back: %v", store.tried, err)
	}
}
