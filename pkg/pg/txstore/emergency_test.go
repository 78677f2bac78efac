package txstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

// LIQ-15: what was done in an emergency is kept as it was said, and cannot be changed.
func TestEmergencyRecord(t *testing.T) {
	d := newHolder(t, 0)
	store := txstore.NewEmergencies(d.DB)
	o := emergency.Order{Run: uuid.NewString(), Action: emergency.RaiseMargin, Operator: "alice", Cause: "a \x00 cause",
		DryRun: true}
	call := emergency.Step{Contract: chain.Address{1}, Calldata: []byte{2, 3}}
	entries := []emergency.Entry{
		{Order: o, Stage: emergency.Planned, Step: call, Outcome: "more"},
		{Order: o, Stage: emergency.Done, TxHash: chain.Hash{4}, Outcome: "sent"},
	}
	for _, e := range entries {
		must(t, store.Record(t.Context(), e))
	}
	got, err := store.List(t.Context(), 9)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	for i, want := range entries {
		e := got[1-i] // the newest first
		if e.Order != want.Order || e.Stage != want.Stage || e.Step.Contract != want.Step.Contract ||
			string(e.Step.Calldata) != string(want.Step.Calldata) ||
			e.TxHash != want.TxHash || e.Outcome != want.Outcome || e.At.IsZero() {
			t.Errorf("kept %+v, want %+v", e, want)
		}
	}
	if err := store.Record(t.Context(),
		emergency.Entry{Order: emergency.Order{Run: "x"}, Stage: emergency.Planned}); err == nil {
		t.Error("a run without an id of its own was recorded")
	}
	for _, sql := range []string{
		`UPDATE keeper.emergency_action SET operator = 'bob'`, `DELETE FROM keeper.emergency_action`,
		`TRUNCATE keeper.emergency_action`,
	} {
		if _, err := connect(t, d.Address).Exec(t.Context(), sql); err == nil ||
			!strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// LIQ-15: what is pending is listed as it will be taken up, and a failed liquidation whose pause was lifted is taken up
// with the planner's next words.
func TestEmergencyLiquidations(t *testing.T) {
	d := newHolder(t, 0)
	ctx, store, intents := t.Context(), txstore.NewEmergencies(d.DB), txstore.NewIntents(d.DB)
	near, far, failed, closed := chain.Hash{1}, chain.Hash{2}, chain.Hash{3}, chain.Hash{4}
	part, err := d.DB.Claim(ctx, pg.ClaimRequest{Generation: 1, Partitions: 1, Label: t.Name()})
	must(t, err)
	active := func(key chain.Hash) perp.Position { return perp.Position{PositionKey: key, Status: perp.Active} }
	debt := perp.BadDebt{OrderKey: chain.Hash{9}, RemainingCostUsd: chain.U64(7).Mul(chain.Pow10(30)),
		Stamp: perp.Stamp{TimeMs: uint64(time.Now().UnixMilli())}}
	old := perp.BadDebt{OrderKey: chain.Hash{8}, RemainingCostUsd: chain.U64(5), Stamp: perp.Stamp{TimeMs: 1}}
	gone := perp.Position{PositionKey: closed, Status: perp.Closed}
	must(t, part.Commit(ctx, pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{
		follow(chain.BlockRef{Number: 10}, active(near), active(far), active(failed), gone, debt, old)}}))
	say := func(position chain.Hash, ratio, foundMs uint64) txm.Admission {
		t.Helper()
		a, err := intents.Enqueue(ctx, job.Job{
			ID: job.LiquidationID(position, 1), Kind: job.Liquidation, Key: position,
			Account: chain.Address(position[:20]), Class: job.ClassLiquidation,
			Ratio: chain.U64(ratio), Signer: d.Fence.Signer,
			Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: foundMs}},
		})
		must(t, err)
		return a
	}
	say(failed, 1, 10)
	pending, err := store.Pending(ctx)
	must(t, err)
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Refused, Reason: "a cause"},
		Rest: txm.Rest{RetryAfterMs: 30_000, GivenUp: true}}
	must(t, intents.Skip(ctx, d.Fence, pending[0].Intent, end))
	say(far, 9, 10)
	say(near, 2, 10)
	say(closed, 1, 10)

	if pending, err = store.Pending(ctx); err != nil || len(pending) != 3 {
		t.Fatal(pending, err)
	}
	for i, want := range []struct {
		key     chain.Hash
		outcome job.Outcome
	}{{near, ""}, {far, ""}, {failed, job.Refused}} {
		if p := pending[i]; p.JobID != job.LiquidationID(want.key, 1) || p.Outcome != want.outcome ||
			p.Account != chain.Address(want.key[:20]) || p.Attempt != 1 {
			t.Errorf("%d: %+v", i, p)
		}
	}
	if a := say(failed, 1, 20_000); a != txm.Cooling {
		t.Fatalf("it is %s before its pause is lifted", a)
	}
	all := []int64{pending[0].Intent, pending[1].Intent, pending[2].Intent}
	for _, want := range []int{1, 0} {
		if n, err := store.RetryNow(ctx, all); err != nil || n != want {
			t.Errorf("lifted %d pauses, %v; want %d", n, err, want)
		}
	}
	if a := say(failed, 1, 20_000); a != txm.NewAttempt {
		t.Errorf("it is %s after its pause was lifted", a)
	}
	if usd, err := store.BadDebtUSD(ctx, time.Hour); err != nil || usd != 7 {
		t.Errorf("bad debt %d, %v", usd, err)
	}
}
