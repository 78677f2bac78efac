package pg_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore/txstoretest"
)

var (
	annSigner, bobSigner, strange = chain.Address{0xa}, chain.Address{0xb}, chain.Address{0xc}
	booking                       = delayed.Booking{ChainID: txstoretest.ChainID,
		Owners: map[chain.Address]string{annSigner: "ann", bobSigner: "bob"}}
)

// paying is the rows of one transaction that paid these fees (wei) to a signer.
func paying(n uint64, block chain.BlockRef, signer chain.Address, fees ...uint64) (rows []perp.Row) {
	tx := chain.Tx{Hash: number(n), Block: block.Number, BlockHash: block.Hash}
	rows = append(rows, perp.Transaction{Tx: tx})
	for i, fee := range fees {
		stamp := perp.Stamp{Block: block.Number, Log: uint32(10*n) + uint32(i), TxHash: tx.Hash, TimeMs: block.TimeMs}
		rows = append(rows, perp.KeeperFee{Keeper: signer, Amount: chain.U64(fee), Stamp: stamp})
	}
	return rows
}

// paid makes a chain of three blocks with fees and applies it to a generation.
func paid(t *testing.T, db *pg.DB, generation int) (blocks []chain.BlockRef, p *pg.Partition) {
	t.Helper()
	p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: generation, Partitions: 1})
	must(t, err)
	parent, applied := ground, []pg.AppliedBlock{}
	for i := range uint64(3) {
		block := follow(parent)
		rows := paying(3*i+1, block.BlockRef, annSigner, 100+i, 200+i)
		rows = append(rows, paying(3*i+2, block.BlockRef, bobSigner, 1000+i)...)
		rows = append(rows, paying(3*i+3, block.BlockRef, strange, 5, 0)...)
		applied = append(applied, follow(parent, rows...))
		blocks, parent = append(blocks, block.BlockRef), block.BlockRef
	}
	must(t, p.Commit(t.Context(), pg.Commit{Next: 10, Blocks: applied}))
	return blocks, p
}

func finalize(t *testing.T, p *pg.Partition, block chain.BlockRef) {
	t.Helper()
	must(t, p.Commit(t.Context(), pg.Commit{Next: p.Offset().Next + 1, Finalized: block}))
}

func book(t *testing.T, db *pg.DB, want int) delayed.Booked {
	t.Helper()
	b, err := db.Wallets().Book(t.Context(), booking)
	must(t, err)
	if b.Fees != want {
		t.Fatalf("booked %d fees, want %d", b.Fees, want)
	}
	return b
}

func wantWallets(t *testing.T, db *pg.DB, want ...string) {
	t.Helper()
	wallets, err := db.Wallets().Verify(t.Context())
	must(t, err)
	var got []string
	for _, w := range wallets {
		got = append(got, w.Agent+" "+w.Balance.String()+" "+w.Frozen.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("wallets %q, want %q", got, want)
	}
	sound(t, db)
}

// sound demands that balances are the sums of the entries.
func sound(t *testing.T, db *pg.DB) {
	t.Helper()
	audits, err := db.Wallets().Verify(t.Context())
	must(t, err)
	for _, a := range audits {
		if !a.Sound() {
			t.Errorf("%+v does not add up", a)
		}
	}
}

// scannerOf is a scanner over a database, alone in its figures.
func scannerOf(db *pg.DB, cfg delayed.Config, kinds ...delayed.Kind) *delayed.Scanner {
	return delayed.NewScanner(cfg, "tester", db.Delayed(), kinds, nil, delayed.NewMetrics(prometheus.NewRegistry()),
		zerolog.Nop())
}

func scanOnce(t *testing.T, s *delayed.Scanner) {
	t.Helper()
	_, err := s.Scan(t.Context())
	must(t, err)
}

// DLY-2: a fee is booked when it is final, once, frozen, to the agent of its signer, and a delayed job orders its
// release.
func TestFeesAreBookedWhenFinal(t *testing.T) {
	db := pgtest.DB(t)
	blocks, p := paid(t, db, 1)
	book(t, db, 0)
	finalize(t, p, blocks[1])
	if b := book(t, db, 6); b.Final != blocks[1].Number || b.Generation != 1 {
		t.Errorf("%+v", b)
	}
	book(t, db, 0)
	wantWallets(t, db, "ann 0 602", "bob 0 2001")
	finalize(t, p, blocks[2])
	book(t, db, 3)
	wantWallets(t, db, "ann 0 906", "bob 0 3003")

	jobs := everyJob(t, db.Delayed())
	if len(jobs) != 9 {
		t.Fatalf("%d jobs for 9 fees", len(jobs))
	}
	var r delayed.Release
	want := "56:" + blocks[0].Hash.Hex() + ":10"
	if j := jobs[0]; j.Read(&r) != nil || j.Kind != delayed.CommissionRelease || j.Key != want ||
		r != (delayed.Release{Agent: "ann", Amount: chain.U64(100)}) {
		t.Errorf("the first job is %+v with %+v, want key %s", j, r, want)
	}
}

// A look at all fees there are takes as many bookings as it takes: each goes on where the last one ended, in whole
// blocks, be they booked already, by another planner or by this one before it was started anew.
func TestFirstLookForFeesComesToItsEnd(t *testing.T) {
	db := pgtest.DB(t)
	blocks, p := paid(t, db, 1)
	finalize(t, p, blocks[2])
	for _, want := range [][]int{{3, 3, 3}, {0, 0, 0}} {
		onwards := booking
		for i, fees := range want {
			b, err := db.Wallets().InStretches(3).Book(t.Context(), onwards)
			if err != nil || b.Fees != fees || b.Final != blocks[i].Number || b.More != (i < 2) {
				t.Fatalf("look %d from block %d on: %+v, %v", i, onwards.From, b, err)
			}
			onwards.Generation, onwards.From = b.Generation, b.Final+1
		}
	}
	wantWallets(t, db, "ann 0 906", "bob 0 3003")
}

// Many stretches are one booking, while there is time.
func TestStretchesOfFees(t *testing.T) {
	db := pgtest.DB(t)
	p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	must(t, err)
	fees := make([]uint64, 1500)
	for i := range fees {
		fees[i] = 1
	}
	var applied []pg.AppliedBlock
	parent := ground
	for n := range uint64(4) {
		applied = append(applied, follow(parent, paying(1000*(n+1), follow(parent).BlockRef, annSigner, fees...)...))
		parent = applied[n].BlockRef
	}
	must(t, p.Commit(t.Context(), pg.Commit{Next: 10, Blocks: applied, Finalized: parent}))
	if b := book(t, db, 6000); b.More || b.Final != parent.Number {
		t.Errorf("%+v", b)
	}
	wantWallets(t, db, "ann 0 6000")
}

// DLY-2: the fee's identity is its log's, outside the generations: a rebuild books nothing twice.
func TestRebuildBooksNothingTwice(t *testing.T) {
	db := pgtest.DB(t)
	blocks, p := paid(t, db, 1)
	finalize(t, p, blocks[1])
	book(t, db, 6)
	must(t, db.CreateGeneration(t.Context(), 2))
	blocks, p = paid(t, db, 2)
	finalize(t, p, blocks[2])
	must(t, db.Switch(t.Context(), 2, "a test"))
	if b := book(t, db, 3); b.Generation != 2 {
		t.Errorf("%+v", b)
	}
	wantWallets(t, db, "ann 0 906", "bob 0 3003")
}

// What a halted state says is not acted upon.
func TestHaltedStateBooksNothing(t *testing.T) {
	db := pgtest.DB(t)
	blocks, p := paid(t, db, 1)
	must(t, p.Commit(t.Context(), pg.Commit{Next: 11, Finalized: blocks[2], Halted: "finality was broken"}))
	if b := book(t, db, 0); b.Final != 0 {
		t.Errorf("looked at it up to block %d", b.Final)
	}
}

// Several planners book at once.
func TestCrowdBooksOnce(t *testing.T) {
	db := pgtest.DB(t)
	blocks, p := paid(t, db, 1)
	finalize(t, p, blocks[2])
	var mu sync.Mutex
	var crowd sync.WaitGroup
	sum := 0
	for range 5 {
		crowd.Go(func() {
			b, err := db.Wallets().Book(t.Context(), booking)
			mu.Lock()
			defer mu.Unlock()
			sum += b.Fees
			if err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	if sum != 9 {
		t.Errorf("%d fees booked", sum)
	}
	wantWallets(t, db, "ann 0 906", "bob 0 3003")
}

// DLY-2, DLY-7: released after the holding time, in one transaction with the job's status; where too little is frozen,
// the job is parked and nothing moves.
func TestRelease(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	blocks, p := paid(t, db, 1)
	finalize(t, p, blocks[0])
	held := booking
	held.Hold = time.Hour
	if b, err := db.Wallets().Book(t.Context(), held); err != nil || b.Fees != 3 {
		t.Fatalf("booked %+v, %v", b, err)
	}
	s := scannerOf(db, delayed.DefaultConfig(), delayed.Commissions{})
	scanOnce(t, s)
	wantWallets(t, db, "ann 0 300", "bob 0 1000")

	// The hold is over; bob's wallet has been tampered with.
	execute(t, url, "UPDATE keeper.delayed_job SET next_at = next_at - interval '1 hour'")
	execute(t, url, "UPDATE keeper.wallet SET frozen_balance = 999 WHERE agent = 'bob'")
	scanOnce(t, s)
	jobs := everyJob(t, db.Delayed())
	if j := jobs[2]; j.Status != delayed.Parked || !strings.Contains(j.LastError, "only 999 wei are frozen") ||
		j.Attempts != 1 {
		t.Errorf("bob's job is %+v", j)
	}
	if got := query[string](t, url,
		"SELECT balance || ' ' || frozen_balance FROM keeper.wallet WHERE agent = 'bob'"); got != "0 999" {
		t.Errorf("bob has %s", got)
	}
	audits, err := db.Wallets().Verify(t.Context())
	must(t, err)
	if len(audits) != 2 || !audits[0].Sound() || audits[1].Sound() {
		t.Errorf("the audit says %+v", audits)
	}
	execute(t, url, "UPDATE keeper.wallet SET frozen_balance = 1000 WHERE agent = 'bob'")
	if taken, err := db.Delayed().Retry(t.Context(), jobs[2].ID); !taken || err != nil {
		t.Fatal(err)
	}
	scanOnce(t, s)
	wantWallets(t, db, "ann 300 0", "bob 1000 0")
	if got := query[string](t, url, "SELECT string_agg(what || ' ' || balance_delta + frozen_delta, ',' ORDER BY id) "+
		"FROM keeper.wallet_entry WHERE agent = 'ann'"); !strings.HasPrefix(got, "commission ") ||
		!strings.HasSuffix(got, ",release 0") || strings.Count(got, ",") != 3 {
		t.Errorf("entries %s", got)
	}
}

// DLY-7: a commission that was released before is not released again, whatever the job says.
func TestReleasedTwiceIsAnAnomaly(t *testing.T) {
	db := pgtest.DB(t)
	blocks, p := paid(t, db, 1)
	finalize(t, p, blocks[0])
	book(t, db, 3)
	twice := kindOf("twice", func(ctx context.Context, tx delayed.Tx, j delayed.Job) (any, error) {
		return nil, tx.Release(ctx, "ann", chain.U64(1), "the same")
	})
	for _, key := range []string{"a", "b"} {
		_, err := db.Delayed().Add(t.Context(), delayed.Appointment{Kind: "twice", Key: key, DueAt: time.Now().
			Add(-time.Hour)})
		must(t, err)
	}
	cfg := delayed.DefaultConfig()
	cfg.Concurrency = 1
	scanOnce(t, scannerOf(db, cfg, twice))
	jobs := everyJob(t, db.Delayed())[3:]
	if jobs[0].Status != delayed.Done || jobs[1].Status != delayed.Parked ||
		!strings.Contains(jobs[1].LastError, "released before") {
		t.Errorf("left %+v", jobs)
	}
	wallets, err := db.Wallets().Verify(t.Context())
	must(t, err)
	if w := wallets[0]; w.Balance != chain.U64(1).Int() || w.Frozen != chain.U64(299).Int() {
		t.Errorf("ann has %+v", w)
	}
}

// kindOf makes a kind out of a function.
func kindOf(name string, do func(context.Context, delayed.Tx, delayed.Job) (any, error)) delayed.Kind {
	return madeUp{name, do}
}

type madeUp struct {
	name string
	do   func(context.Context, delayed.Tx, delayed.Job) (any, error)
}

func (m madeUp) Name() string { return m.name }

func (m madeUp) Do(ctx context.Context, tx delayed.Tx, j delayed.Job) (any, error) {
	return m.do(ctx, tx, j)
}

// A ledger is written at its end and nowhere else, also by people.
func TestLedgerIsAppendOnly(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	blocks, p := paid(t, db, 1)
	finalize(t, p, blocks[0])
	book(t, db, 3)
	for _, sql := range []string{
		"UPDATE keeper.wallet_entry SET frozen_delta = 0", "DELETE FROM keeper.wallet_entry",
		"TRUNCATE keeper.wallet_entry",
		"UPDATE keeper.commission SET amount = 1", "DELETE FROM keeper.commission", "TRUNCATE keeper.commission",
	} {
		if err := tryExecute(t, url, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{"UPDATE keeper.wallet SET frozen_balance = -1",
		"UPDATE keeper.wallet SET balance = -1"} {
		if err := tryExecute(t, url, sql); err == nil {
			t.Errorf("%s was accepted", sql)
		}
	}
	wantWallets(t, db, "ann 0 300", "bob 0 1000")
}
