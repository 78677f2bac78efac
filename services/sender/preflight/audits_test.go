package preflight

import (
	"context"
	"errors"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txmanager"
)

// auditRows are the audits that stand in the state, by the key of their row.
type auditRows struct {
	rows  map[chain.Hash]perp.MarketValue
	at    uint64 // the watermark
	err   error
	asked int
}

func (r *auditRows) Look(_ context.Context, k pg.Keys) (pg.Rows, error) {
	r.asked++
	found := find(r.rows, k.Values)
	for key, f := range found {
		f.At.Number = r.at
		found[key] = f
	}
	return pg.Rows{Values: found}, r.err
}

// A job waits until each of its markets was audited in a block that every partition has reached, and then never asks
// again.
func TestJobsWaitForTheFirstAudit(t *testing.T) {
	one, two := chain.Address{1}, chain.Address{2}
	state := &auditRows{rows: map[chain.Hash]perp.MarketValue{}, at: 50}
	pass := func(market chain.Address, in uint64) {
		state.rows[perp.AuditKey(market).Key] = perp.MarketValue{Measure: perp.WordsAudited, Scope: market.Hash(),
			Value: chain.U64(in - 2).Int(), Stamp: perp.Stamp{Block: in}}
	}
	a := &audits{state: state}
	j := job.Job{Market: one, Evidence: job.Evidence{Generation: 1}}
	ask := func(want txmanager.Decision, markets ...chain.Address) {
		t.Helper()
		v, err := a.ask(t.Context(), j, markets)
		if err != nil || v.Kind != want {
			t.Errorf("%+v, %v; want %d", v, err, want)
		}
		if want == txmanager.Retry && !strings.Contains(v.Reason, "have not been compared with the chain yet") {
			t.Errorf("it waits for %q", v.Reason)
		}
	}
	ask(txmanager.Retry)
	pass(one, 51)
	ask(txmanager.Retry) // some partition has not reached the block
	state.at = 51
	ask(txmanager.Proceed)
	ask(txmanager.Retry, two) // it swaps in a market that was not audited
	pass(two, 40)
	ask(txmanager.Proceed, two)
	asked := state.asked
	ask(txmanager.Proceed, two)
	if state.asked != asked {
		t.Error("what has passed is asked for again")
	}
	j.Evidence.Generation = 2
	clear(state.rows)
	ask(txmanager.Retry) // another generation of the state has audits of its own
	j.Market = chain.Address{}
	ask(txmanager.Proceed) // a swap has no market but those of its path
	state.err, j.Market = errors.New("connection refused"), one
	if v, err := a.ask(t.Context(), j, nil); err == nil || v.Kind != txmanager.Proceed {
		t.Errorf("an error is no answer: %+v, %v", v, err)
	}
}
