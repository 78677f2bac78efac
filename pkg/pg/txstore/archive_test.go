package txstore_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

const (
	daily   = 24 * time.Hour
	archive = 48 * time.Hour // after which the tests archive
)

// ended ends the holder's intents at the numbers from 0 on, each with a receipt, and reports them.
func (d holder) ended(t *testing.T) (txs []txm.SignedTx) {
	t.Helper()
	store := txstore.NewIntents(d.DB)
	for n, id := range d.Intents {
		tx := d.MustClaim(t, id, uint64(n), uint64(n))
		must(t, store.Noted(t.Context(), d.Fence, tx.Hash, "", true))
		r := txm.Receipt{TxHash: tx.Hash, Block: chain.BlockRef{Number: uint64(n) + 1, Hash: chain.Hash{byte(n), 1}},
			OK: true, GasUsed: 7, GasPrice: 3, Outcome: job.Done}
		must(t, store.Record(t.Context(), d.Fence, r))
		must(t, store.Finish(t.Context(), d.Fence, txm.FinalReceipt{Receipt: r, Rest: txm.Rest{RetryAfterMs: 500}}))
		txs = append(txs, tx)
	}
	must(t, store.Reported(t.Context(), d.Fence, d.Intents))
	return txs
}

// age lets all that has ended have ended that much earlier.
func age(t *testing.T, address string, by time.Duration) {
	t.Helper()
	execute(t, address, `UPDATE keeper.tx_intent SET ended_at = ended_at - $1::bigint * interval '1 microsecond'
		WHERE ended_at IS NOT NULL`, by.Microseconds())
}

func count(t *testing.T, address, table string) int64 {
	t.Helper()
	return query[int64](t, address, `SELECT count(*) FROM keeper.`+table)
}

// stocked counts the rows of what is kept of intents, where they are worked with and in the archive.
func stocked(t *testing.T, address string) (counts []int64) {
	t.Helper()
	for _, table := range []string{"tx_intent", "signed_tx", "tx_receipt", "signer_nonce_allocation",
		"archived_intent", "archived_signed_tx", "archived_receipt", "archived_allocation"} {
		counts = append(counts, count(t, address, table))
	}
	return counts
}

func moved(t *testing.T, db *pg.DB, most, want int) {
	t.Helper()
	if got, err := txstore.NewArchive(db).Move(t.Context(), archive, most); err != nil || got != want {
		t.Fatalf("moved %d, %v; want %d", got, err, want)
	}
}

// What ended long enough ago moves, the oldest first, with its transactions, receipts and numbers; the rest stays, and
// so does the highest number that the signer was given. People find it where it is.
func TestArchiveTakesWhatHasEnded(t *testing.T) {
	d := newHolder(t, 4)
	txs := d.ended(t)
	moved(t, d.DB, 10, 0) // all of it is young
	age(t, d.Address, 3*daily)
	execute(t, d.Address, `UPDATE keeper.tx_intent SET reported_at = NULL WHERE id = $1`, d.Intents[1])
	before, err := txstore.NewIntents(d.DB).Attempts(t.Context(), txstore.Wanted{Key: chain.Hash{1}}, 10)
	must(t, err)

	moved(t, d.DB, 1, 1)
	moved(t, d.DB, 10, 1)
	moved(t, d.DB, 10, 0)
	if got, want := stocked(t, d.Address), []int64{2, 2, 2, 2, 2, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v: the unreported one and the one with the highest number stay", got, want)
	}
	if untouched, err := txstore.NewLeases(d.DB).Untouched(t.Context(), d.Fence.Signer); err != nil || untouched {
		t.Errorf("untouched %t, %v, after numbers were given out", untouched, err)
	}

	for name, w := range map[string]txstore.Wanted{"key": {Key: chain.Hash{1}},
		"id":          {JobID: job.OrderID(chain.Hash{1}, 1)},
		"transaction": {Key: txs[0].Hash}} {
		after, err := txstore.NewIntents(d.DB).Attempts(t.Context(), w, 10)
		if err != nil || len(after) != 1 || !after[0].Archived {
			t.Fatalf("by %s: %+v, %v", name, after, err)
		}
		after[0].Archived = false
		after[0].EndedAt, after[0].Intent.Waited = before[0].EndedAt, before[0].Intent.Waited
		if !reflect.DeepEqual(after, before) {
			t.Errorf("by %s:\n%+v, want\n%+v", name, after, before)
		}
	}
	listed, err := txstore.NewIntents(d.DB).EndedAttempts(t.Context(), "", "", time.Now(), 10)
	if err != nil || len(listed) != 4 {
		t.Errorf("%d attempts are listed as ended, %v", len(listed), err)
	}
	if unsigned, err := txstore.NewIntents(d.DB).Unsigned(t.Context(), []chain.Hash{txs[0].Hash, {9}}); err != nil ||
		!slices.Equal(unsigned, []chain.Hash{{9}}) {
		t.Errorf("unsigned %v, %v", unsigned, err)
	}
	numbers, err := txstore.NewSigners(d.DB).Numbers(t.Context(), d.Fence.Signer, 0, 9)
	if err != nil || len(numbers) != 4 || numbers[0].State != "CONSUMED" {
		t.Errorf("numbers %+v, %v", numbers, err)
	}
}

// A job whose attempts are archived, and even dropped, is not queued again by what was said of it before its end; what
// is said of a state after that is another need.
func TestArchivedJobIsNotExecutedAgain(t *testing.T) {
	d := newHolder(t, 2)
	d.ended(t)
	age(t, d.Address, 200*daily)
	moved(t, d.DB, 10, 1)
	key := chain.Hash{1}
	again := job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Class: job.ClassMarketOrder,
		Signer: d.Fence.Signer}
	say := func(ms uint64, want txm.Admission) {
		t.Helper()
		again.Evidence.Block.TimeMs = ms
		if got, err := txstore.NewIntents(d.DB).Enqueue(t.Context(), again); err != nil || got != want {
			t.Errorf("%s, %v at %d, want %s", got, err, ms, want)
		}
	}
	say(0, txm.Cooling)
	say(500, txm.Cooling)

	execute(t, d.Address, `UPDATE keeper.archive_mark SET summed_ms = 1::bigint << 60`)
	dropWeek(t, d.DB, true)
	if n := count(t, d.Address, "archived_intent"); n != 0 {
		t.Errorf("%d rows are left of a week that was dropped", n)
	}
	say(0, txm.Cooling)
	say(500, txm.Cooling)
	say(501, txm.NewAttempt)
	say(501, txm.Refreshed)
}

// The attempts of a job that did not end for good are counted on while they are archived: its results are told apart by
// them.
func TestArchivedArmsAreCountedOn(t *testing.T) {
	d := newHolder(t, 3)
	d.ended(t)
	execute(t, d.Address, `UPDATE keeper.tx_intent SET outcome = 'reverted', attempt = 7 WHERE id = $1`, d.Intents[0])
	age(t, d.Address, 200*daily)
	moved(t, d.DB, 10, 2)
	attempt := func(n byte) (attempt uint32) {
		key := chain.Hash{n}
		again := job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Class: job.ClassMarketOrder,
			Signer: d.Fence.Signer, Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: 501}}}
		if got, err := txstore.NewIntents(d.DB).Enqueue(t.Context(), again); err != nil || got != txm.NewAttempt {
			t.Fatal(got, err)
		}
		heads, err := txstore.NewIntents(d.DB).Heads(t.Context(), d.Fence.Signer, txm.Pick{Limit: 9})
		must(t, err)
		for _, h := range heads {
			if h.Job.ID == again.ID {
				attempt = h.Attempt
			}
		}
		return attempt
	}
	if failed, done := attempt(1), attempt(2); failed != 8 || done != 1 {
		t.Errorf("attempt %d of what had failed 7 times, want 8; attempt %d of what was done", failed, done)
	}
	execute(t, d.Address, `UPDATE keeper.archive_mark SET summed_ms = 1::bigint << 60`)
	dropWeek(t, d.DB, true)
	if n := count(t, d.Address, "archived_job"); n != 0 {
		t.Errorf("%d attempts are counted on for ever", n)
	}
}

// A number whose row is archived is not given again, neither as a gap nor to a job.
func TestArchivedNumberIsNotGivenAgain(t *testing.T) {
	d := newHolder(t, 4)
	last := d.Intents[3]
	d.Intents = d.Intents[:3]
	d.ended(t)
	age(t, d.Address, 3*daily)
	moved(t, d.DB, 10, 2)
	tx := txm.SignedTx{Nonce: 1, Hash: chain.Hash{0xf1}, Raw: []byte{1}, Gas: txm.EmptyGas, Tip: 1, Cap: 1}
	if err := txstore.NewIntents(d.DB).Fill(t.Context(), d.Fence, tx); txm.Refused(err) == "" {
		t.Errorf("a filled number 1: %v", err)
	}
	if err := txstore.NewIntents(d.DB).Claim(t.Context(), d.Fence, d.Claim(last, 1, 3)); txm.Refused(err) == "" {
		t.Errorf("a claimed number 1: %v", err)
	}
	d.MustClaim(t, last, 3, 3)
}

// A process that dies in the middle of a move has moved nothing; the next one moves all, once.
func TestKilledMoveLosesNothing(t *testing.T) {
	d := newHolder(t, 6)
	d.ended(t)
	age(t, d.Address, 3*daily)
	execute(t, d.Address, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN OLD; END $$`)
	want := stocked(t, d.Address)
	for _, table := range []string{"tx_receipt", "signed_tx", "signer_nonce_allocation", "tx_intent"} {
		execute(t, d.Address, `CREATE TRIGGER die AFTER DELETE ON keeper.`+table+` FOR EACH ROW EXECUTE FUNCTION die()`)
		if n, err := txstore.NewArchive(d.DB).Move(t.Context(), archive, 10); err == nil || n != 0 {
			t.Errorf("dying at %s: moved %d, %v", table, n, err)
		}
		if got := stocked(t, d.Address); !slices.Equal(got, want) {
			t.Errorf("dying at %s: %v rows, want %v", table, got, want)
		}
		execute(t, d.Address, `DROP TRIGGER die ON keeper.`+table)
	}
	moved(t, d.DB, 10, 5)
	if got, want := stocked(t, d.Address), []int64{1, 1, 1, 1, 5, 5, 5, 5}; !slices.Equal(got, want) {
		t.Errorf("%v rows, want %v", got, want)
	}
}

// Of two that archive at the same time one does it.
func TestOneArchivesAtATime(t *testing.T) {
	d := newHolder(t, 3)
	d.ended(t)
	age(t, d.Address, 3*daily)
	other := begin(t, d.Address)
	run(t, other, `SELECT pg_advisory_xact_lock(hashtext('perpkeeper archive'))`)
	moved(t, d.DB, 10, 0)
	must(t, other.Rollback(t.Context()))

	locked := begin(t, d.Address) // somebody works with the row
	run(t, locked, `SELECT FROM keeper.tx_intent WHERE id = $1 FOR UPDATE`, d.Intents[0])
	moved(t, d.DB, 10, 1)
	must(t, locked.Rollback(t.Context()))
	moved(t, d.DB, 10, 1)
}

// What is not in the archive cannot be deleted, by anybody.
func TestOnlyWhatIsArchivedIsDeleted(t *testing.T) {
	d := newHolder(t, 2)
	d.ended(t)
	conn := connect(t, d.Address)
	for _, table := range []string{"tx_intent", "signed_tx", "signer_nonce_allocation"} {
		if _, err := conn.Exec(t.Context(), "DELETE FROM keeper."+table); err == nil ||
			!strings.Contains(err.Error(), "never deleted before they are archived") {
			t.Errorf("deleting from %s: %v", table, err)
		}
	}
	if _, err := conn.Exec(t.Context(), `SELECT keeper.open_archive_week('2024-01-01'),
		keeper.drop_archive_week('2024-01-01')`); err == nil || !strings.Contains(err.Error(), "summed up") {
		t.Errorf("dropping a week that is not summed up: %v", err)
	}
}

// The archive has the columns of what it archives, in their order, and views show them; who adds one to the tables adds
// it there.
func TestArchiveHasTheColumns(t *testing.T) {
	address := pgtest.URL(t)
	columns := func(table string) []string {
		return query[[]string](t, address, `SELECT array_agg(attname || ' ' || atttypid::regtype ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = ('keeper.' || $1)::regclass AND attnum > 0 AND NOT attisdropped`, table)
	}
	const ended = "ended_at timestamp with time zone"
	for live, names := range map[string][2]string{
		"tx_intent": {"archived_intent", "every_intent"}, "signed_tx": {"archived_signed_tx", "every_signed_tx"},
		"tx_receipt": {"archived_receipt", "every_receipt"}, "signer_nonce_allocation": {"archived_allocation", ""},
	} {
		want, archived := columns(live), columns(names[0])
		if live != "tx_intent" {
			archived = slices.DeleteFunc(archived, func(c string) bool { return c == ended })
		}
		if !slices.Equal(archived, want) {
			t.Errorf("%s has %v,\n%s %v", live, want, names[0], archived)
		}
		if names[1] == "" {
			continue
		}
		seen := slices.DeleteFunc(columns(names[1]), func(c string) bool { return c == "archived boolean" })
		if !slices.Equal(seen, want) {
			t.Errorf("%s has %v,\n%s %v", live, want, names[1], seen)
		}
	}
}

// The sender's role can do all of it, and the planner's none.
func TestSenderRoleArchives(t *testing.T) {
	d := newHolder(t, 3)
	d.ended(t)
	age(t, d.Address, 200*daily)
	must(t, pgtest.Grant(t.Context(), d.DB))
	if n, err := txstore.NewArchive(pgtest.OpenAs(t, pg.RolePlanner, d.Address)).
		Move(t.Context(), archive, 10); err == nil {
		t.Errorf("the planner moved %d", n)
	}
	sender := pgtest.OpenAs(t, pg.RoleSender, d.Address)
	moved(t, sender, 10, 2)
	execute(t, d.Address, `UPDATE keeper.archive_mark SET summed_ms = 1::bigint << 60`)
	dropWeek(t, sender, true)
	dropped := query[int64](t, d.Address, `SELECT intents FROM keeper.archive_week WHERE dropped_at IS NOT NULL AND bytes > 0`)
	left := query[int](t, d.Address, `SELECT count(*) FROM keeper.tx_intent WHERE ended_at IS NOT NULL`)
	if dropped != 2 || left != 1 {
		t.Errorf("%d intents dropped with their week, %d left", dropped, left)
	}
}

// dropWeek drops a week of what is older than 90 days, if there is one.
func dropWeek(t *testing.T, db *pg.DB, want bool) {
	t.Helper()
	if dropped, err := txstore.NewArchive(db).Expire(t.Context(), 90*daily); err != nil ||
		dropped.Week.IsZero() == want {
		t.Fatalf("dropped %+v, %v; want one: %t", dropped, err, want)
	}
}

// Rows that are removed are found by indexes: no foreign key has their tables searched for what refers to them, and
// what is old is not looked for among all that has ended.
func TestOldRowsAreFoundByTheIndex(t *testing.T) {
	address := pgtest.URL(t)
	if n := query[int](t, address, `SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND confrelid IN
		('keeper.tx_intent'::regclass, 'keeper.signed_tx'::regclass,
		'keeper.signer_nonce_allocation'::regclass)`); n > 0 {
		t.Errorf("%d foreign keys refer to what is archived", n)
	}
	conn := connect(t, address)
	for _, sql := range []string{"SET enable_seqscan = off", "SET plan_cache_mode = force_generic_plan",
		"PREPARE old AS " + pg.StatementTexts()["attempts to archive"]} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE old (1, 1)")
	must(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "Index Cond: ((ended_at < (now()") {
		t.Errorf("no index bounds the age:\n%s", plan)
	}
}
