package pg_test

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/txm"
)

// LIQ-8: in flight it is LIQUIDATING, after the last retry LIQUIDATION_FAILED, and the position's own row says Active
// all the while.
func TestLiquidationsAreSeenByOthers(t *testing.T) {
	d := txstoretest.New(t, 0)
	d.Kind = job.Liquidation
	db, ctx := d.DB, t.Context()
	part := claim(t, db, 0, 1)
	open, closed := chain.Hash{1}, chain.Hash{2}
	block := follow(chain.BlockRef{Number: 10}, perp.Position{PositionKey: open, Status: perp.Active},
		perp.Position{PositionKey: closed, Status: perp.Closed})
	commit(t, part, block)
	intents := txstore.NewIntents(db)
	begin := func(position chain.Hash, foundMs uint64) int64 {
		t.Helper()
		j := job.Job{
			ID: job.LiquidationID(position, 1), Kind: job.Liquidation, Key: position,
			Account: chain.Address(position[:20]), Class: job.ClassLiquidation,
			Signer: d.Fence.Signer, Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: foundMs}},
		}
		if a, err := intents.Enqueue(ctx, j); err != nil || a != txm.NewAttempt {
			t.Fatal(a, err)
		}
		heads, err := intents.Heads(ctx, d.Fence.Signer, txm.Pick{Limit: 1})
		if err != nil || len(heads) != 1 {
			t.Fatal(heads, err)
		}
		return heads[0].ID
	}
	expect := func(what string, want ...pg.LiquidationStatus) {
		t.Helper()
		found, err := db.Liquidations(ctx)
		if err != nil || len(found) != len(want) {
			t.Fatalf("%s: %+v, %v", what, found, err)
		}
		for i, l := range found {
			if l.Status != want[i] || l.Position != open ||
				(l.Status == pg.LiquidationFailed) != (l.Outcome == job.Reverted && !l.EndedAt.IsZero()) {
				t.Errorf("%s: %+v", what, l)
			}
		}
		if row, err := db.Position(ctx, open); err != nil || row.Row.Status != perp.Active {
			t.Errorf("%s: the position's own row says %s, %v", what, row.Row.Status, err)
		}
	}
	expect("nothing said")
	for try := range uint64(txm.Retries + 1) {
		id := begin(open, 10+try)
		if try == 0 {
			expect("queued")
		}
		tx := d.MustClaim(t, id, try, try)
		expect("in flight", pg.Liquidating)
		r := txm.Receipt{TxHash: tx.Hash, Block: chain.BlockRef{Number: 1, Hash: chain.Hash{1}}, Outcome: job.Reverted,
			Reason: "cause unknown"}
		must(t, intents.Record(ctx, d.Fence, r))
		rest := txm.Rest{RetryAfterMs: 10 + try, GivenUp: txm.GivenUp(job.Reverted, uint32(try))}
		must(t, intents.Finish(ctx, d.Fence, txm.FinalReceipt{Receipt: r, Rest: rest}))
		if try < txm.Retries {
			expect("between two tries")
			continue
		}
		expect("after the last retry", pg.LiquidationFailed)
	}
	d.MustClaim(t, begin(closed, 10), txm.Retries+1, txm.Retries+1)
	expect("another one of a position that is closed", pg.LiquidationFailed)
}
