package pg_test

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/txm"
)

// What waits, what is in flight, what has ended, what it cost and what it brought: counted over the last while, for
// this keeper's signers alone.
func TestRecent(t *testing.T) {
	d := txstoretest.New(t, 3)
	ctx, intents := t.Context(), txstore.NewIntents(d.DB)
	tx := d.MustClaim(t, d.Intents[0], 0, 0)
	r := txm.Receipt{TxHash: tx.Hash, Block: chain.BlockRef{Number: 1, Hash: chain.Hash{1}}, Outcome: job.Done,
		OK: true, GasUsed: 21_000, GasPrice: 5}
	must(t, intents.Record(ctx, d.Fence, r))
	must(t, intents.Finish(ctx, d.Fence, txm.FinalReceipt{Receipt: r, Rest: txm.Rest{RetryAfterMs: 1}}))
	d.MustClaim(t, d.Intents[1], 1, 1)

	part := claim(t, d.DB, 0, 1)
	now := chain.BlockRef{Number: 11, Hash: chain.Hash{11}, TimeMs: uint64(time.Now().UnixMilli())}
	before := now
	before.TimeMs -= 2 * uint64(time.Hour.Milliseconds())
	rows := append(paying(1, now, d.Fence.Signer, 700, 7), paying(2, now, strange, 90)...)
	commit(t, part, follow(chain.BlockRef{Number: 10}, append(rows, paying(3, before, d.Fence.Signer, 1000)...)...))

	got, err := d.DB.Recent(ctx, time.Hour)
	must(t, err)
	if got.Queued[job.ClassMarketOrder] != 1 || got.InFlight[job.ClassMarketOrder] != 1 || len(got.Queued) != 1 {
		t.Errorf("queued %v, in flight %v", got.Queued, got.InFlight)
	}
	if got.Ended[job.Done] != 1 || len(got.Ended) != 1 || got.Spent.String() != "105000" ||
		got.Earned.String() != "707" {
		t.Errorf("ended %v, spent %s, earned %s", got.Ended, got.Spent, got.Earned)
	}
	landed, err := d.DB.Landed(ctx, time.Hour, 10)
	must(t, err)
	if len(landed) != 1 || landed[0].Signer != d.Fence.Signer || landed[0].Kind != job.Order ||
		landed[0].Outcome != job.Done || landed[0].GasUsed != 21_000 || landed[0].GasPrice != 5 ||
		landed[0].QueuedMs > landed[0].SeenMs || time.Since(time.UnixMilli(int64(landed[0].SeenMs))) > time.Hour {
		t.Errorf("landed %+v", landed)
	}
	var none pg.Recent
	if none, err = d.DB.Recent(ctx, 0); err != nil || len(none.Ended) != 0 || !none.Spent.IsZero() ||
		!none.Earned.IsZero() {
		t.Errorf("within no time: %+v, %v", none, err)
	}
}
