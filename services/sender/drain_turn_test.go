package sender

import (
	"context"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmanager"
	"perpkeeper/services/sender/turns"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// TIER-9: the turn is asked for again right before the claim, because the road may have been long.
func TestDrainClaimsNothingLate(t *testing.T) {
	const birth = 60_000_000
	cfg := tier.DefaultConfig()
	cfg.Enabled, cfg.Priority, cfg.Peers = true, 2, []tier.Peer{{Tier: 1}, {Tier: 3}}
	clock := headtrack.New(time.Now)
	head := func(ms uint64) { clock.Set(chain.BlockRef{Number: ms / 450, TimeMs: ms}, time.Now()) }
	head(birth + 56_000)
	o := newOffice(t, func(job.Job) (txmanager.Verdict, error) {
		head(birth + 57_000)
		return txmanager.Verdict{}, nil
	})
	o.turns = turns.New(turns.Config{Tier: cfg, Head: clock, Clock: time.Now, Log: zerolog.Nop(),
		Metrics: turns.NewMetrics(prometheus.NewRegistry())})
	o.claim = func(context.Context, []*txmanager.Task) (txmanager.Verdict, error) {
		t.Error("claimed after the window's end")
		return txmanager.Verdict{}, nil
	}
	j := job.Job{ID: "order", Kind: job.Order, BirthMs: birth, ExpiresMs: birth + 300_000, Signer: o.signer}
	if _, err := o.db.Intents().Enqueue(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(o.trail) != 1 || len(o.asleep) != 1 || len(o.outcomes(t)) != 0 {
		t.Errorf("walked %v, sleeping %v, ended %v", o.trail, o.asleep, o.outcomes(t))
	}
}

// TIER-11: other tiers' windows are no waiting of a task's own: it is given up for its age only when it has waited so
// long in turns of its own.
func TestDrainIsPatientWithOthers(t *testing.T) {
	now := time.Now()
	answer := txmanager.Verdict{Kind: txmanager.Yielding, Reason: "the Master's window"}
	o := newOffice(t, func(job.Job) (txmanager.Verdict, error) { return answer, nil })
	o.clock, o.maxAge = func() time.Time { return now }, time.Nanosecond
	o.queue(t, "a")
	pass := func() {
		t.Helper()
		clear(o.asleep)
		if err := o.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	answer = txmanager.Wait("no report yet")
	pass() // it has just got its turn
	if got := o.outcomes(t); len(got) != 0 {
		t.Fatalf("ended: %v", got)
	}
	now = now.Add(time.Second)
	pass()
	if got := o.outcomes(t); got["a"] != job.Expired || len(o.yielded) != 0 {
		t.Errorf("ended: %v, remembered %v", got, o.yielded)
	}
}
