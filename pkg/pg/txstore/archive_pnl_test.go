package txstore_test

import (
	"reflect"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/pnl"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

// monday is the first day of a week that is long gone.
var monday = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// yearsAgo is a signer that worked for ten days from a Monday on, twice a day, and a state that knows it: one was lost,
// one freed a number, one is of no intent. What it did has ended a minute after its block. The last block is final.
func yearsAgo(t *testing.T) (holder, *pg.Partition, *ledgerOf) {
	t.Helper()
	const blocks = 20
	d := newHolder(t, blocks)
	l := &ledgerOf{signer: d.Fence.Signer, since: uint64(monday.UnixMilli()), apart: 12 * hourMs}
	for n, id := range d.Intents {
		tx := d.MustClaim(t, id, uint64(n), uint64(n))
		hash, ok := tx.Hash, n != 1
		switch n {
		case 2:
			freeing := txm.SignedTx{Nonce: 2, Hash: chain.Hash{0xf}, Raw: []byte{2}, Gas: txm.EmptyGas, Tip: 2, Cap: 2}
			must(t, txstore.NewIntents(d.DB).Replace(t.Context(), d.Fence, txm.Replacement{Intent: id, After: hash,
				Kind: txm.Cancel, Tx: freeing, Cancel: txm.Verdict{Outcome: job.Withdrawn, Reason: "x"}}))
			hash = freeing.Hash
		case 3:
			hash = chain.Hash{0xcc}
		}
		execute(t, d.Address, `UPDATE keeper.tx_intent SET state = 'FINAL_OK', outcome = 'done', reason = '',
			retry_after_ms = 0, ended_at = to_timestamp($2::bigint / 1000) + interval '1 minute', reported_at = now()
			WHERE id = $1`, id, int64(l.timeOf(n+1)))
		l.block(l.tx(hash, ok, uint64(100+n), 3, uint64(1000*(n%5)))...)
	}
	execute(t, d.Address, `UPDATE keeper.signer_nonce_allocation SET state = 'CONSUMED'`)
	p, err := d.DB.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	must(t, err)
	must(t, p.Commit(t.Context(), pg.Commit{Next: 10, Blocks: l.blocks}))
	return d, p, l
}

// since are the figures from so long after the Monday on.
func (d holder) since(t *testing.T, l *ledgerOf, after time.Duration) pnl.Statement {
	t.Helper()
	end := time.UnixMilli(int64(l.timeOf(len(l.blocks))))
	s, err := txstore.NewArchive(d.DB).ProfitAndLoss(t.Context(), end.Sub(monday.Add(after)))
	must(t, err)
	return s
}

// Profit and loss are the same before what it was for is archived, while it is in the archive, and when that is
// dropped; but of the day in which a range begins, where its week is gone, nobody knows what for.
func TestProfitAndLossOutlivesTheArchive(t *testing.T) {
	d, p, l := yearsAgo(t)
	must(t, p.Commit(t.Context(), pg.Commit{Next: 11, Finalized: l.blocks[len(l.blocks)-1].BlockRef}))
	midnights := []time.Duration{-daily, 0, daily, 3 * daily, 7 * daily, 8 * daily}
	before := map[time.Duration]pnl.Statement{}
	for _, at := range midnights {
		before[at] = d.since(t, l, at)
	}
	noon := 5*daily + 6*time.Hour
	partial := d.since(t, l, noon).Total()
	if all := before[0].Total(); all.Transactions != 20 || all.Lost != 1 || all.Freed != 1 ||
		all.Fees != chain.U64(40000) ||
		len(before[0].By(pnl.ByKind)) != 2 {
		t.Fatalf("all is %+v", before[0])
	}
	same := func(when string) {
		t.Helper()
		for _, at := range midnights {
			if got := d.since(t, l, at); !reflect.DeepEqual(got, before[at]) {
				t.Errorf("%s, from %s: %+v, want %+v", when, at, got, before[at])
			}
		}
		if got := d.since(t, l, noon).Total(); got != partial {
			t.Errorf("%s, from noon: %+v, want %+v", when, got, partial)
		}
	}
	moved(t, d.DB, 7, 7)
	same("while it moves")
	moved(t, d.DB, 100, 12)
	same("archived")
	dropWeek(t, d.DB, true)
	same("dropped")
	if n := count(t, d.Address, "archived_intent"); n != 6 {
		t.Errorf("%d attempts are left in the archive", n)
	}
}

// A week is dropped with its sums or not at all, and not before the state is final up to its end.
func TestWeekIsDroppedWithItsSums(t *testing.T) {
	d, p, l := yearsAgo(t)
	moved(t, d.DB, 100, 19)
	must(t, p.Commit(t.Context(), pg.Commit{Next: 11, Finalized: l.blocks[12].BlockRef}))
	if dropped, err := txstore.NewArchive(d.DB).Expire(t.Context(), 90*daily); err == nil {
		t.Errorf("dropped %+v, and the state is final up to its Sunday noon", dropped)
	}
	must(t, p.Commit(t.Context(), pg.Commit{Next: 12, Finalized: l.blocks[19].BlockRef}))
	execute(t, d.Address, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
	execute(t, d.Address, `CREATE TRIGGER die AFTER UPDATE ON keeper.archive_week FOR EACH ROW EXECUTE FUNCTION die()`)
	if dropped, err := txstore.NewArchive(d.DB).Expire(t.Context(), 90*daily); err == nil {
		t.Errorf("dropped %+v while dying", dropped)
	}
	if n, sums := count(t, d.Address, "archived_intent"), count(t, d.Address, "pnl_day"); n != 19 || sums != 0 {
		t.Errorf("after dying %d attempts and %d sums", n, sums)
	}
	execute(t, d.Address, `DROP TRIGGER die ON keeper.archive_week`)
	dropWeek(t, d.DB, true)
	if dropped, err := txstore.NewArchive(d.DB).Expire(t.Context(), 90*daily); err == nil {
		t.Errorf("dropped %+v, and the state ends in the middle of it", dropped)
	}
	if n, sums := count(t, d.Address, "archived_intent"), count(t, d.Address, "pnl_day"); n != 6 || sums == 0 {
		t.Errorf("%d attempts and %d sums", n, sums)
	}
}
