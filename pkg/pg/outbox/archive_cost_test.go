package outbox_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/outbox"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txm"
)

// site is a keeper's database at work: a sender's signer, and a partition of the state.
type site struct {
	holder

	name      string
	partition *pg.Partition
	tip       chain.BlockRef
	offset    int64
	next      int // job and number
	took      map[string][]time.Duration
}

// newSite has one job done and one order closed, of which its past is made.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	s := &site{holder: newHolder(t, 0), name: name, tip: ground, took: map[string][]time.Duration{}}
	p, err := s.DB.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	must(t, err)
	s.partition = p
	cfg := pg.DefaultConfig()
	cfg.URL, cfg.PlanOnce = secret.MustURL(s.Address), true // as the sender has it
	s.DB, err = pg.Open(t.Context(), cfg, "sender")
	must(t, err)
	t.Cleanup(s.DB.Close)
	execute(t, s.Address, `UPDATE keeper.signer_lease SET expires_at = clock_timestamp() + interval '1 day'`)
	s.round(t)
	s.took = map[string][]time.Duration{}
	return s
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
	ctx, store, n := t.Context(), outbox.NewIntents(s.DB), uint64(s.next)
	s.next++
	key := chain.Keccak256(fmt.Append(nil, "job", n))
	j := job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Class: job.ClassMarketOrder, BirthMs: n,
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
	final := txm.FinalReceipt{Receipt: r, Rest: txm.Rest{RearmMs: 10}}
	s.timed(t, "end a job", func() error { return store.Finish(ctx, s.Fence, final) })
	s.timed(t, "report", func() error { return store.Reported(ctx, s.Fence, []int64{heads[0].ID}) })
	s.timed(t, "rows of a job",
		func() error { _, err := s.DB.Look(ctx, pg.Keys{Orders: []chain.Hash{key}}); return err })
	var rows []perp.Row
	for i := range 20 {
		rows = append(rows, perp.Order{Key: chain.Keccak256(fmt.Append(nil, "order", n, i)),
			Account: chain.Address{byte(i)},
			Status:  perp.Executed, SizeDeltaUsd: perp.Pow10(30)})
	}
	block := follow(s.tip, rows...)
	s.tip, s.offset = block.BlockRef, s.offset+1
	s.timed(t, "apply a block of 20 orders", func() error {
		return s.partition.Commit(ctx, pg.Commit{Next: s.offset, Blocks: []pg.AppliedBlock{block}})
	})
}

// past copies the one job that is done and one closed order that often, over so many days, the last today: the jobs
// into the archive or where they are worked with. The numbers go below those of the signer.
func (s *site) past(t *testing.T, archived bool, jobs, days, orders int) {
	t.Helper()
	table := func(live, archive string) string {
		if archived {
			return "keeper." + archive
		}
		return "keeper." + live
	}
	const batch = 50_000
	copied := func(from, to string, count int, changes map[string]string, extra string) {
		for first := 0; first < count; first += batch {
			var names, values []string
			for _, c := range query[[]string](t, s.Address,
				`SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
				WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`, from) {
				names, values = append(names, c), append(values, cmp.Or(changes[c], "f."+c))
			}
			if extra != "" && archived {
				names, values = append(names, "ended_at"), append(values, extra)
			}
			//nolint:unqueryvet // columns are named outside; what is inside is one row
			execute(t, s.Address, fmt.Sprintf(`INSERT INTO %s (%s) %s SELECT %s
				FROM (SELECT * FROM %s ORDER BY 1 LIMIT 1) f, generate_series(%d, %d) AS i`, to,
				strings.Join(names, ", "),
				map[bool]string{true: "OVERRIDING SYSTEM VALUE"}[from == "keeper.tx_intent" && !archived],
				strings.Join(values, ", "), from, first+1, min(first+batch, count)))
		}
	}
	if archived {
		execute(t, s.Address, fmt.Sprintf(`SELECT keeper.open_archive_week(w::date) FROM generate_series(
			date_trunc('week', now() - interval '%d days'), now(), interval '7 days') AS w`, days))
	}
	at := fmt.Sprintf(`now() - i * (interval '%d days' / %d)`, days, jobs)
	hash, key := `sha256(('t' || i)::bytea)`, `sha256(('k' || i)::bytea)`
	other := `'\xbb00000000000000000000000000000000000000'::bytea` // whose numbers are nobody's
	if !archived {
		other = `f.signer`
	}
	number := `(1000000000 + i)`
	copied("keeper.tx_intent", table("tx_intent", "archived_intent"), jobs, map[string]string{
		"id": "1000000000 + i", "job_id": `'order:0x' || encode(` + key + `, 'hex') || ':1'`, "key": key,
		"nonce":  number,
		"signer": other, "ended_at": at, "reported_at": at}, "")
	copied("keeper.tx_attempt", table("tx_attempt", "archived_attempt"), jobs, map[string]string{
		"hash": hash, "intent": "1000000000 + i", "nonce": number, "signer": other}, at)
	copied("keeper.tx_receipt", table("tx_receipt", "archived_receipt"), jobs, map[string]string{
		"intent": "1000000000 + i", "tx_hash": hash, "signer": other, "seen_at": at}, at)
	copied("keeper.signer_nonce_allocation", table("signer_nonce_allocation", "archived_allocation"), jobs,
		map[string]string{"intent": "1000000000 + i", "nonce": number, "signer": other}, at)
	copied("state_g1.perp_order", "state_g1.perp_order", orders, map[string]string{"key": key}, "")
}

// What the statements of the road cost after a year, as a ratio to what they cost in an empty database: with all of it
// where it was written, and with what has ended in the archive. KEEPER_LONG=1; KEEPER_YEAR is how many jobs a year has
// (1 100 000), KEEPER_ROUNDS how many times all is done in each database.
func TestRoadAfterAYear(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("fills databases: set KEEPER_LONG=1")
	}
	year, rounds := 1_100_000, 2000
	if n, err := strconv.Atoi(os.Getenv("KEEPER_YEAR")); err == nil {
		year = n
	}
	if n, err := strconv.Atoi(os.Getenv("KEEPER_ROUNDS")); err == nil {
		rounds = n
	}
	empty, all, archived := newSite(t, "empty"), newSite(t, "all in one"), newSite(t, "archive")
	all.past(t, false, year, 365, year)
	archived.past(t, false, year*2/365, 2, year)
	archived.past(t, true, year*90/365, 90, 0)
	sites := []*site{empty, all, archived}
	for _, s := range sites {
		execute(t, s.Address, "VACUUM ANALYZE")
		t.Logf("%s: %d arms at hand, %d in the archive, %d orders, %s", s.name, count(t, s.Address, "tx_intent"),
			count(t, s.Address, "archived_intent"),
			query[int64](t, s.Address, `SELECT count(*) FROM state_g1.perp_order`),
			query[string](t, s.Address, `SELECT pg_size_pretty(pg_database_size(current_database()))`))
	}
	execute(t, empty.Address, "CHECKPOINT")
	for i := range rounds { // side by side, so that what else the machine does falls on all of them
		for _, s := range sites {
			s.round(t)
		}
		if i == rounds/10 { // plans and caches are warm
			for _, s := range sites {
				s.took = map[string][]time.Duration{}
			}
		}
	}
	var names []string
	for name := range empty.took {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		base := median(empty.took[name])
		ratio := func(s *site) float64 { return float64(median(s.took[name])) / float64(base) }
		t.Logf("%-28s %6d µs empty, x %.2f all in one, x %.2f with the archive", name, base.Microseconds(), ratio(all),
			ratio(archived))
	}
}

func median(took []time.Duration) time.Duration {
	took = slices.Clone(took)
	slices.Sort(took)
	return took[len(took)/2]
}
