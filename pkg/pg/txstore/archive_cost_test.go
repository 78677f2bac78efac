package txstore_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// What a keeper's tables hold: so many orders a day, the shipped retention (two days, then retention.keep) and a few
// thousand traders. Numbers of the signer count up from where its past ends.
const (
	ordersADay  = 30_000
	daysAtHand  = 2
	daysKept    = "90"
	traders     = 20_000
	firstNumber = 1_000_000_000
)

// site is a keeper's database at work: a sender's signer, and a partition of the state.
type site struct {
	holder

	name      string
	statevm   *pg.DB
	partition *pg.Partition
	tip       chain.BlockRef
	offset    int64
	next      int // job and number
	took      map[string][]time.Duration

	jobs, orders int // of the past
}

// newSite makes a database in which one job is done and one block applied, of which its past is made.
func newSite(t *testing.T, server *historyServer, name string) *site {
	t.Helper()
	s := &site{name: name, tip: ground, next: firstNumber, took: map[string][]time.Duration{}}
	s.Kind = job.Order
	execute(t, server.URL(""), "CREATE DATABASE "+name)
	db := txstoretest.Open(t, server.URL(name), "setup")
	must(t, db.Migrate(t.Context()))
	signer := txstoretest.Register(t, db)
	s.open(t, server)
	var err error
	s.Fence, err = txstore.NewLeases(s.DB).Acquire(t.Context(), signer, lease.NewOwner(name), time.Minute)
	must(t, err)
	execute(t, s.Address, fmt.Sprintf(`UPDATE keeper.signer_lease SET expires_at = clock_timestamp() + interval '1 day',
		next_nonce = %d, mined_nonce = %[1]d`, firstNumber))
	s.round(t)
	return s
}

// open connects to the database, of a server that may have been started anew.
func (s *site) open(t *testing.T, server *historyServer) {
	t.Helper()
	s.Address = server.URL(s.name)
	s.statevm = txstoretest.Open(t, s.Address, "statevm")
	var err error
	s.partition, err = s.statevm.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	must(t, err)
	cfg := pg.DefaultConfig()
	cfg.URL, cfg.PlanOnce = secret.MustURL(s.Address), true // as the sender has it
	s.DB, err = pg.Open(t.Context(), cfg, "sender")
	must(t, err)
	t.Cleanup(s.DB.Close)
}

func (s *site) timed(t *testing.T, what string, do func() error) {
	t.Helper()
	began := time.Now()
	must(t, do())
	s.took[what] = append(s.took[what], time.Since(began))
}

// round takes one job from the topic to its result, and applies a block with twenty orders.
func (s *site) round(t *testing.T) {
	t.Helper()
	ctx, store, n := t.Context(), txstore.NewIntents(s.DB), uint64(s.next)
	s.next++
	key := chain.Keccak256(fmt.Append(nil, "job", n))
	j := job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Class: job.ClassMarketOrder, DueSinceMs: n,
		Signer: s.Fence.Signer, Evidence: job.Evidence{Block: chain.BlockRef{Number: n, TimeMs: 1_000_000 + n}}}
	s.timed(t, "queue a job", func() error { _, err := store.Enqueue(ctx, j); return err })
	var heads []txm.Intent
	s.timed(t, "heads of the queue", func() (err error) {
		heads, err = store.Heads(ctx, s.Fence.Signer, txm.Pick{Limit: 8})
		return err
	})
	b := s.Claim(heads[0].ID, n, n)
	b.Claims[0].Tx.Raw = make([]byte, 700)
	tx := b.Claims[0].Tx
	s.timed(t, "claim", func() error { return store.Claim(ctx, s.Fence, b) })
	s.timed(t, "note a broadcast", func() error { return store.Noted(ctx, s.Fence, tx.Hash, "", true) })
	s.timed(t, "transactions in flight", func() error { _, err := store.InFlight(ctx, s.Fence.Signer); return err })
	r := txm.Receipt{TxHash: tx.Hash, Block: chain.BlockRef{Number: n + 1, Hash: chain.Hash{1}}, OK: true, GasUsed: 7,
		GasPrice: 3, Outcome: job.Done}
	s.timed(t, "record a receipt", func() error { return store.Record(ctx, s.Fence, r) })
	final := txm.FinalReceipt{Receipt: r, Rest: txm.Rest{RetryAfterMs: 10}}
	s.timed(t, "end a job", func() error { return store.Finish(ctx, s.Fence, final) })
	s.timed(t, "report", func() error { return store.Reported(ctx, s.Fence, []int64{heads[0].ID}) })
	s.timed(t, "rows of a job",
		func() error { _, err := s.DB.Look(ctx, pg.Keys{Orders: []chain.Hash{key}}); return err })
	var rows []perp.Row
	for i := range 20 {
		trader := sha256.Sum256(fmt.Append(nil, "a", (int(n)*20+i)*7919%traders))
		rows = append(rows, perp.Order{Key: chain.Keccak256(fmt.Append(nil, "order", n, i)),
			Account: chain.Address(trader[:20]), Status: perp.Executed, SizeDeltaUsd: perp.Pow10(30)})
	}
	block := follow(s.tip, rows...)
	s.tip, s.offset = block.BlockRef, s.offset+1
	s.timed(t, "apply a block of 20 orders", func() error {
		return s.partition.Commit(ctx, pg.Commit{Next: s.offset, Blocks: []pg.AppliedBlock{block}})
	})
}

// warmUp works until the journal of blocks has its full length and lets the server count the rows: on tables that are
// all but empty it plans to read them whole, and keeps to that while they grow.
func (s *site) warmUp(t *testing.T) {
	t.Helper()
	for range chain.UndoHorizon {
		s.round(t)
	}
	execute(t, s.Address, "ANALYZE")
}

// grow lets the database have a past of so many days, of copies of the one job and one order: closed orders in the
// state, and ended jobs where the shipped retention has them, those of the archive no older than kept days. It is
// called with rising numbers.
func (s *site) grow(t *testing.T, days, kept int) {
	t.Helper()
	jobs, atHand, orders := min(days, kept)*ordersADay, daysAtHand*ordersADay, days*ordersADay
	for _, c := range jobCopies("", `f.signer`) {
		for _, statement := range s.copying(t, c, s.jobs, min(jobs, atHand)) {
			execute(t, s.Address, statement)
		}
	}
	execute(t, s.Address, fmt.Sprintf(`SELECT keeper.open_archive_week(w::date) FROM generate_series(
		date_trunc('week', now() - interval '%d days'), now(), interval '7 days') AS w`, kept+1))
	build := s.dropIndexes(t)
	work := s.copying(t, orderCopies, s.orders, orders)
	for _, c := range jobCopies("archived", `'\xbb00000000000000000000000000000000000000'::bytea`) {
		work = append(work, s.copying(t, c, max(s.jobs, atHand), jobs)...)
	}
	sideBySide(t, "copy", s.Address, work...)
	sideBySide(t, "build", s.Address, build...)
	s.jobs, s.orders = jobs, orders
	execute(t, s.Address, "ALTER TABLE "+orderTable+" ADD PRIMARY KEY USING INDEX perp_order_pkey; ANALYZE "+orderTable+
		", keeper.tx_intent, keeper.signed_tx, keeper.tx_receipt, keeper.signer_nonce_allocation")
}

// sideBySide executes statements on connections of their own, as many at a time as -parallel says.
func sideBySide(t *testing.T, name, address string, statements ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for i, statement := range statements {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				execute(t, address, statement)
			})
		}
	})
}

// copies are rows of a table like one of another: some columns are changed, and some the other does not have.
type copies struct {
	from, to      string
	changed, more map[string]string
}

// jobCopies are ended jobs, counted from the newest, as many for each day, in the tables of the sender or the archive.
func jobCopies(archive, signer string) []copies {
	at := fmt.Sprintf(`(now() - i * interval '1 day' / %d)`, ordersADay)
	id, number, key, hash := `(1000000000 + i)`, fmt.Sprintf(`(%d - i)`, firstNumber), `sha256(('k' || i)::bytea)`,
		`sha256(('t' || i)::bytea)`
	all := []copies{
		{"tx_intent", "intent", map[string]string{"id": id, "job_id": `'order:0x' || encode(` + key + `, 'hex') || ':1'`,
			"key": key, "nonce": number, "signer": signer, "ended_at": at, "reported_at": at}, nil},
		{"signer_nonce_allocation", "allocation",
			map[string]string{"intent": id, "nonce": number, "signer": signer}, nil},
		{"signed_tx", "signed_tx",
			map[string]string{"hash": hash, "intent": id, "nonce": number, "signer": signer}, nil},
		{"tx_receipt", "receipt",
			map[string]string{"intent": id, "tx_hash": hash, "signer": signer, "seen_at": at}, nil},
	}
	for i := range all {
		c := &all[i]
		c.from = "keeper." + c.from
		if archive == "" {
			c.to = c.from
			continue
		}
		c.to = "keeper." + archive + "_" + c.to
		if c.from != "keeper.tx_intent" {
			c.more = map[string]string{"ended_at": at}
		}
	}
	return all
}

const orderTable = "state_g1.perp_order"

var orderCopies = copies{orderTable, orderTable, map[string]string{"key": `sha256(('o' || i)::bytea)`,
	"account": fmt.Sprintf(`substr(sha256(('a' || i::bigint * 7919 %% %d)::bytea), 1, 20)`, traders),
	"rev":     `i - 1000000000`}, nil}

// dropIndexes removes those of the orders and returns the statements that build them anew: those of hashes with the
// room that hashes leave in them (a leaf that is split at random places is 70 % full).
func (s *site) dropIndexes(t *testing.T) (build []string) {
	t.Helper()
	secondary := query[[]string](t, s.Address, `SELECT array_agg(pg_get_indexdef(indexrelid)) FROM pg_index
		WHERE indrelid = $1::regclass AND NOT indisprimary`, orderTable)
	names := query[string](t, s.Address, `SELECT string_agg(indexrelid::regclass::text, ', ') FROM pg_index
		WHERE indrelid = $1::regclass AND NOT indisprimary`, orderTable)
	execute(t, s.Address, "DROP INDEX "+names+"; ALTER TABLE "+orderTable+" DROP CONSTRAINT perp_order_pkey")
	build = []string{"CREATE UNIQUE INDEX perp_order_pkey ON " + orderTable + " (key, part) WITH (fillfactor = 70)"}
	for _, definition := range secondary {
		if strings.HasSuffix(definition, "(account)") {
			definition += " WITH (fillfactor = 70)"
		}
		build = append(build, definition)
	}
	for i := range build {
		build[i] = "SET maintenance_work_mem = '256MB'; " + build[i]
	}
	return build
}

// copying has the statements that add the copies after one number up to another.
func (s *site) copying(t *testing.T, c copies, after, last int) (statements []string) {
	t.Helper()
	var names, values []string
	for _, column := range query[[]string](t, s.Address, `SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`, c.from) {
		names, values = append(names, column), append(values, cmp.Or(c.changed[column], "f."+column))
	}
	for name, value := range c.more {
		names, values = append(names, name), append(values, value)
	}
	system := ""
	if c.to == "keeper.tx_intent" {
		system = "OVERRIDING SYSTEM VALUE"
	}
	const part = 50_000
	for ; after < last; after += part {
		//nolint:unqueryvet // columns are named outside; what is inside is one row
		statements = append(statements, fmt.Sprintf(`INSERT INTO %s (%s) %s SELECT %s FROM (SELECT * FROM %s LIMIT 1) f,
			generate_series(%d, %d) AS i`, c.to, strings.Join(names, ", "), system, strings.Join(values, ", "), c.from,
			after+1, min(after+part, last)))
	}
	return statements
}

// readIndexes reads the indexes of hashes once: a keeper that has run for a year has in its buffers what fits of them.
func (s *site) readIndexes(t *testing.T) {
	t.Helper()
	execute(t, s.Address, `CREATE EXTENSION IF NOT EXISTS pg_prewarm;
		SELECT pg_prewarm('state_g1.perp_order_account'), pg_prewarm('state_g1.perp_order_pkey')`)
}

// vacuum does what the server would do by itself, many times in the hours that the rounds stand for.
func (s *site) vacuum(t *testing.T) {
	t.Helper()
	execute(t, s.Address, `VACUUM state_g1.undo, state_g1.kept_block, state_g1.stream_offset, keeper.signer_lease,
		keeper.tx_intent, keeper.signed_tx, keeper.tx_receipt, keeper.signer_nonce_allocation`)
}
