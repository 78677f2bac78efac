package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// venueOf is one that executes a kind of job.
func venueOf(kind job.Kind) *gmx.Follower {
	return gmx.Fixed(gmx.VenueOf(chain.Address{0xee}, map[job.Kind]chain.Address{kind: {7}}))
}

// TIER-14: which reports an execution takes.
func TestPrepareChoosesReports(t *testing.T) {
	venue := venueOf(job.Order)
	r := &Checker{venue: venue, gas: reckoned(), lags: new(lags), Parts: Parts{
		Head:   horizonAt(90_000, time.Now()),
		Quotes: quotesOf(reportAt(weth, 60_100), reportAt(weth, 61_000), reportAt(weth, 90_000))}}
	j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth}}
	with := func(ms uint64) []byte {
		_, data, err := venue.Venue().Call(j, setOf([]price.Report{reportAt(weth, ms)}))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, c := range map[string]struct {
		terms terms
		data  []byte
		want  txmanager.Decision
		why   string
	}{
		"the first at or after": {terms{window: perp.Window{From: 60, To: 360}, first: true}, with(60_100),
			txmanager.Proceed, ""},
		"the newest": {terms{window: perp.Window{From: 60}, first: false}, with(90_000), txmanager.Proceed, ""},
		"none young enough yet, first": {terms{window: perp.Window{From: 91, To: 391}, first: true}, nil,
			txmanager.Retry,
			"no price report"},
		"none young enough yet": {terms{window: perp.Window{From: 91}, first: false}, nil, txmanager.Retry,
			"wants one from 91 on"},
		"none old enough any more": {terms{window: perp.Window{From: 62, To: 80}, first: true}, nil, txmanager.Drop,
			"none after 80"},
	} {
		got, _, v := r.prepare(j, c.terms, 0)
		if v.Kind != c.want || !strings.Contains(v.Reason, c.why) {
			t.Errorf("%s: %+v", name, v)
			continue
		}
		if c.want == txmanager.Proceed && (got.To != (chain.Address{7}) || got.Gas != r.gas.limit(j, gmx.Work{}, 0) ||
			!slices.Equal(got.Data, c.data)) {
			t.Errorf("%s: call %+v", name, got)
		}
	}
	cancel := job.Job{ID: "cancelOrder:x:1", Kind: "cancelOrder", Key: chain.Hash{1}} // it takes no reports
	if got, reports, v := r.prepare(cancel, terms{}, 0); v.Kind != txmanager.Proceed || got.To != (chain.Address{7}) ||
		len(got.Data) != 36 || len(reports) != 0 || got.Rehearsal != nil {
		t.Errorf("a cancel: %+v, %+v", got, v)
	}
	if _, _, v := r.prepare(job.Job{ID: "deposit:x", Kind: job.Deposit}, terms{}, 0); v.Kind != txmanager.Defer {
		t.Errorf("a kind without a handler: %+v", v)
	}
}

func TestForetold(t *testing.T) {
	for class, want := range map[gmx.RevertClass]txmanager.Verdict{
		gmx.DoneElsewhere: {Kind: txmanager.Drop, Outcome: job.LostRace},
		gmx.Recovered:     {Kind: txmanager.Drop, Outcome: job.DroppedRecovered},
		gmx.NeedsReport:   {Kind: txmanager.Retry}, gmx.Expired: {Kind: txmanager.Drop, Outcome: job.Expired},
		gmx.NeedsGas:         {Kind: txmanager.Retry, Heads: 1},
		gmx.NeedsRole:        {Kind: txmanager.Defer, Heads: 1},
		gmx.NotNow:           {Kind: txmanager.Defer, Heads: 1},
		gmx.TokenRefuses:     {Kind: txmanager.Defer},
		gmx.CancelsOrFreezes: {Kind: txmanager.Drop, Outcome: job.Refused},
		gmx.UnknownRevert:    {Kind: txmanager.Retry, Heads: 1},
	} {
		got := verdictOf(gmx.Revert{Class: class, Name: "Cause"})
		if got.Kind != want.Kind || got.Outcome != want.Outcome || got.Heads != want.Heads || got.Reason == "" {
			t.Errorf("%s: %+v, want %+v", class, got, want)
		}
	}
}

// errNode is a node that answers every simulated call alike.
type errNode struct{ err error }

func (n errNode) Simulate(context.Context, chain.Address, chain.Address, []byte, uint64, chain.Uint) (evm.Source,
	error) {
	return "", n.err
}

func TestRecheckTellsSilenceFromAnAnswer(t *testing.T) {
	r := &Checker{}
	away := errNode{errors.New("connection refused")}
	if o, err := r.simulate(t.Context(), away, job.Job{}, txmanager.Call{}); err == nil ||
		o.verdict.Kind != txmanager.Proceed {
		t.Errorf("a node that does not answer: %+v, %v", o, err)
	}
	if o, err := r.simulate(t.Context(), errNode{}, job.Job{}, txmanager.Call{}); err != nil ||
		o.verdict.Kind != txmanager.Proceed {
		t.Errorf("a call that succeeds: %+v, %v", o, err)
	}
	late := &Checker{Parts: Parts{Head: horizonAt(nowMs, time.Now())}}
	v, err := late.Run(t.Context(), &txmanager.Task{Intent: txm.Intent{Job: job.Job{ExpiresMs: nowMs - 1}}})
	if err != nil || v.Outcome != job.Expired {
		t.Errorf("a job past its end: %+v, %v", v, err)
	}
	for saidMs, outcome := range map[uint64]job.Outcome{nowMs - unpublishedMs - 1: job.DroppedRecovered,
		nowMs - unpublishedMs: job.SkippedDone} {
		j := job.Job{Kind: job.Adl, Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: saidMs}}}
		late.pending.state = written{}
		if v, err := late.Run(t.Context(), &txmanager.Task{Intent: txm.Intent{Job: j}}); err != nil ||
			v.Outcome != outcome {
			t.Errorf("a deleveraging said %d ms ago: %+v, %v", nowMs-saidMs, v, err)
		}
	}
}
