package sender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmanager"
	"perpkeeper/services/sender/turns"
)

// settle is the freshness gate (TIER-8): nothing is sent by a keeper that does not see what happens. It is asked before
// every send, so that a keeper that has just started, or has fallen behind, holds back exactly as long as it must. What
// closes it is the rule of [tier.Bounds]; this gathers what is known.
//
// All ages are on the chain's clock, but for that of the head itself.
type settle struct {
	horizon *headtrack.Tracker
	quotes  *quotes
	turns   *turns.Tracker
	state   interface {
		// Standing tells up to which block Postgres has come.
		Standing(ctx context.Context) (pg.Standing, error)
	}
	// endpoints tell of the heads that each of them has named.
	endpoints func() []evm.EndpointStatus
	bounds    tier.Bounds
	signer    signerSight
}

// signerSight is what the gate knows of one signer.
type signerSight struct {
	held       func() string // why the nodes would take nothing more of it, or empty
	reconciled func() bool   // whether its nonces were compared with the chain in this tenure
}

// anySigner stands for a signer that nothing holds back, where the question is whether anybody could send.
func anySigner() signerSight {
	return signerSight{held: func() string { return "" }, reconciled: func() bool { return true }}
}

func (s settle) run(ctx context.Context, t *txmanager.Task) (txmanager.Verdict, error) {
	if reason := s.signer.held(); reason != "" {
		return txmanager.Shut(reason), nil
	}
	standing, err := s.state.Standing(ctx)
	if err != nil {
		return txmanager.Verdict{}, fmt.Errorf("asking how far the state is: %w", err)
	}
	f := s.sight(standing)
	s.look(&f, t.Job())
	switch scope, reason := s.bounds.Closed(f); scope {
	case tier.EveryJob:
		return txmanager.Shut(reason), nil
	case tier.OneJob:
		return txmanager.Wait(reason), nil
	default:
		return txmanager.Verdict{}, nil
	}
}

// healthy returns why the gate is closed for everybody, for readiness.
func (s settle) healthy(ctx context.Context) error {
	standing, err := s.state.Standing(ctx)
	if err != nil {
		return fmt.Errorf("asking how far the state is: %w", err)
	}
	if scope, reason := s.bounds.Closed(s.sight(standing)); scope == tier.EveryJob {
		return errors.New(reason)
	}
	return nil
}

// sight is what concerns every job.
func (s settle) sight(standing pg.Standing) tier.Freshness {
	head, age := s.horizon.Newest()
	f := tier.Freshness{
		HeadAge: age, HeadMs: head.TimeMs, EvidenceMs: s.turns.EvidenceMs(head.TimeMs),
		ReportMs:   max(s.bounds.TimeOfReports(head.TimeMs, s.quotes.Newest()), s.secondHead()),
		Reconciled: s.signer.reconciled(), Generation: standing.Generation, Halted: standing.Halted,
	}
	if !standing.Watermark.Hash.IsZero() {
		f.WatermarkMs = standing.Watermark.TimeMs
	}
	if !s.quotes.complete.Load() {
		f.Reading = "price reports"
	}
	return f
}

// secondHead is the time (ms) of the second newest head that endpoints have named, each for itself; 0 where there are
// not two.
func (s settle) secondHead() uint64 {
	var times []uint64
	for _, e := range s.endpoints() {
		if !e.Private {
			times = append(times, e.Head.TimeMs)
		}
	}
	if len(times) < 2 {
		return 0
	}
	slices.Sort(times)
	return times[len(times)-2]
}

// look adds what concerns one job.
func (s settle) look(f *tier.Freshness, j job.Job) {
	f.JobState = int(j.Evidence.Generation)
	for _, token := range j.Tokens {
		newest, known := s.quotes.Latest(token)
		if !known {
			f.Unquoted = token.Hex()
			return
		}
		f.PriceAge = max(f.PriceAge, time.Duration(f.HeadMs-min(f.HeadMs, newest.TimeMs))*time.Millisecond)
		f.PriceLead = max(f.PriceLead, time.Duration(newest.TimeMs-min(f.HeadMs, newest.TimeMs))*time.Millisecond)
	}
}
