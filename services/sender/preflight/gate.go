package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txmanager"
)

// Gate is the freshness gate (TIER-8): a keeper that does not see what happens signs nothing to execute a job. It is
// asked before everything that is so signed, so that a keeper that has just started, or has fallen behind, holds back
// exactly as long as it must; stored bytes that are public are repeated without it. What closes it is the rule of
// [tier.Bounds]; this gathers what is known.
//
// The state is as old as the partition furthest behind. Planners judge each job by rows of all partitions, as of their
// common block, and due times must be equal in all keepers. So a partition that has stopped closes the gate for every
// job.
//
// All ages are on the chain's clock, but for that of the head itself.
type Gate struct {
	Head   *headtrack.Tracker
	Quotes *Quotes
	// EvidenceMs is the time (ms) of the block up to which the evidence of the tiers was read, given the head's: the
	// head's own where no evidence is asked for, 0 while the past is still being read.
	EvidenceMs func(headMs uint64) uint64
	State      interface {
		// Progress returns up to which block Postgres has come.
		Progress(ctx context.Context) (pg.Progress, error)
	}
	// Endpoints tell of the heads that each of them has named.
	Endpoints func() []evm.EndpointStatus
	Bounds    tier.Bounds
}

// Stage is the gate before a signer's tasks. Held returns why the nodes would take nothing more of the signer, or is
// empty; reconciled, whether its nonces were compared with the chain in this lease term.
func (g Gate) Stage(held func() string, reconciled func() bool) txmanager.Stage {
	return txmanager.Stage{Name: "gate", Run: func(ctx context.Context, t *txmanager.Task) (txmanager.Verdict,
		error) {
		if reason := held(); reason != "" {
			return txmanager.Shut(reason), nil
		}
		if read, is := readFor(t); is {
			return g.judge(read.Progress, t.Job(), reconciled()), nil
		}
		return g.ask(ctx, t.Job(), reconciled())
	}}
}

// recheck is the gate before another look at a job that has its nonce: who does not see what happens signs nothing more
// for it. Its nonce was reconciled when it was given, and a raise is what may help where nodes take no more; so these
// are not asked again. Nor is the generation that the job was found in: the look itself is at the rows of now.
func (g Gate) recheck(ctx context.Context, j job.Job) (txmanager.Verdict, error) {
	progress, err := g.State.Progress(ctx)
	if err != nil {
		return txmanager.Verdict{}, fmt.Errorf("asking how far the state is: %w", err)
	}
	j.Evidence.Generation = uint32(progress.Generation)
	return g.judge(progress, j, true), nil
}

func (g Gate) ask(ctx context.Context, j job.Job, reconciled bool) (txmanager.Verdict, error) {
	progress, err := g.State.Progress(ctx)
	if err != nil {
		return txmanager.Verdict{}, fmt.Errorf("asking how far the state is: %w", err)
	}
	return g.judge(progress, j, reconciled), nil
}

// judge is the verdict on a job with the state as far as it is.
func (g Gate) judge(progress pg.Progress, j job.Job, reconciled bool) txmanager.Verdict {
	f := g.freshness(progress, reconciled)
	g.addJob(&f, j)
	switch scope, reason := g.Bounds.Closed(f); scope {
	case tier.EveryJob:
		return txmanager.Shut(reason)
	case tier.OneJob:
		return txmanager.Wait(reason)
	default:
		return txmanager.Verdict{Reason: f.String()}
	}
}

// Healthy returns why the gate is closed for everybody, for readiness.
func (g Gate) Healthy(ctx context.Context) error {
	progress, err := g.State.Progress(ctx)
	if err != nil {
		return fmt.Errorf("asking how far the state is: %w", err)
	}
	if scope, reason := g.Bounds.Closed(g.freshness(progress, true)); scope == tier.EveryJob {
		return errors.New(reason)
	}
	return nil
}

// freshness is what concerns every job.
func (g Gate) freshness(progress pg.Progress, reconciled bool) tier.Freshness {
	head, age := g.Head.Newest()
	f := tier.Freshness{
		HeadAge: age, HeadMs: head.TimeMs, EvidenceMs: g.EvidenceMs(head.TimeMs),
		ReportMs:   max(g.Bounds.TimeOfReports(head.TimeMs, g.Quotes.Newest()), g.secondHead()),
		Reconciled: reconciled, Generation: progress.Generation, Halted: progress.Halted,
	}
	if !progress.Watermark.Hash.IsZero() {
		f.WatermarkMs = progress.Watermark.TimeMs
	}
	if !g.Quotes.complete.Load() {
		f.Reading = "price reports"
	}
	return f
}

// secondHead is the time (ms) of the newest head that a second host has named or passed; 0 where there are not two.
func (g Gate) secondHead() uint64 {
	newest := map[string]uint64{} // by host: two of its endpoints have one word together
	for _, e := range g.Endpoints() {
		if !e.Private {
			newest[e.Host] = max(newest[e.Host], e.Head.TimeMs)
		}
	}
	if len(newest) < 2 {
		return 0
	}
	times := slices.Sorted(maps.Values(newest))
	return times[len(times)-2]
}

// addJob adds what concerns one job.
func (g Gate) addJob(f *tier.Freshness, j job.Job) {
	f.JobState = int(j.Evidence.Generation)
	for _, token := range j.Tokens {
		newest, known := g.Quotes.Latest(token)
		if !known {
			f.Unquoted = token.Hex()
			return
		}
		f.PriceAge = max(f.PriceAge, time.Duration(f.HeadMs-min(f.HeadMs, newest.TimeMs))*time.Millisecond)
		f.PriceLead = max(f.PriceLead, time.Duration(newest.TimeMs-min(f.HeadMs, newest.TimeMs))*time.Millisecond)
	}
}
