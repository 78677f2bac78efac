package pg_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// The tests here put commissions through whatever may go wrong: every tenth release fails after it has moved the money,
// for ever.
const failEvery = 10

func crashConfig() delayed.Config {
	return delayed.Config{
		Interval: 100 * time.Millisecond, Concurrency: 2, Batch: 100, MaxAttempts: 3, Backoff: 100 * time.Millisecond,
		MaxBackoff: 200 * time.Millisecond,
	}
}

// faulty is the kind of releases in which every tenth fails.
var faulty = kindOf(delayed.CommissionRelease, func(ctx context.Context, tx delayed.Tx, j delayed.Job) (any, error) {
	result, err := delayed.Commissions{}.Do(ctx, tx, j)
	if err == nil && j.ID%failEvery == 0 {
		err = fmt.Errorf("attempt %d came to nothing", j.Attempts+1)
	}
	return result, err
})

// rest is a bell that nobody rings.
type rest struct{}

func (rest) Wait(ctx context.Context, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// earn books so many fees of 1 to n wei.
func earn(t *testing.T, db *pg.DB, fees int) {
	t.Helper()
	p := claim(t, db, 0, 1)
	block := follow(ground)
	rows := []perp.Row{}
	for i := range fees {
		tx := number(uint64(1 + i/100))
		if i%100 == 0 {
			rows = append(rows, perp.Transaction{Tx: chain.Tx{Hash: tx, Block: block.Number, BlockHash: block.Hash}})
		}
		stamp := perp.Stamp{Block: block.Number, Log: uint32(i), TxHash: tx, TimeMs: 1}
		rows = append(rows, perp.KeeperFee{Keeper: []chain.Address{annSigner, bobSigner}[i%2],
			Amount: chain.U64(uint64(i + 1)), Stamp: stamp})
	}
	must(t, p.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{follow(ground, rows...)},
		Finalized: block.BlockRef}))
	book(t, db, fees)
}

// settled reports whether nothing is pending any more.
func settled(ctx context.Context, url string) (left int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return -1, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SELECT count(*) FROM keeper.delayed_job WHERE status = 'pending'").Scan(&left)
	return left, err
}

// awaitLeft waits until no more than so many jobs are pending.
func awaitLeft(t *testing.T, url string, most int) {
	t.Helper()
	guard, tick := time.NewTimer(5*time.Minute), time.NewTicker(5*time.Millisecond)
	defer guard.Stop()
	defer tick.Stop()
	for {
		left, err := settled(t.Context(), url)
		if err == nil && left <= most {
			return
		}
		select {
		case <-tick.C:
		case <-guard.C:
			t.Fatalf("%d jobs are still pending: %v", left, err)
		}
	}
}

// wantEachOnce demands that every job was done once or parked after its attempts, and that the money adds up.
func wantEachOnce(t *testing.T, url string, fees int) {
	t.Helper()
	const done = "SELECT count(*) FROM keeper.delayed_job WHERE status = 'done' AND attempts = 0 AND last_error IS " +
		"NULL AND id % 10 <> 0"
	const parked = "SELECT count(*) FROM keeper.delayed_job WHERE status = 'parked' AND attempts = 3 AND id % 10 = " +
		"0 AND " +
		"last_error = 'attempt 3 came to nothing'"
	const released = "SELECT count(*) FROM keeper.wallet_entry WHERE what = 'release'"
	const missing = "SELECT (sum(balance) - (SELECT sum((payload->>'amount')::numeric) FROM keeper.delayed_job " +
		"WHERE status = 'done'))::int FROM keeper.wallet"
	for sql, want := range map[string]int{
		done: fees - fees/failEvery, parked: fees / failEvery, released: fees - fees/failEvery, missing: 0,
	} {
		if got := query[int](t, url, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	sound(t, open(t, url))
}

// DLY-5, DLY-6: two scanners whose connections are cut, whose commits are lost before and after the server has heard of
// them, one of which dies in the middle of a job, and a database that goes away and returns: each job is done once, and
// those that fail are parked after their attempts.
func TestDelayedThroughTrouble(t *testing.T) {
	const fees = 400
	url := pgtest.URL(t)
	earn(t, open(t, url), fees)
	ctx, stop := context.WithCancel(t.Context())
	var scanners sync.WaitGroup
	run := func(ctx context.Context, p *pgtest.Proxy) {
		db := open(t, p.URL())
		scanners.Go(func() { _ = scannerOf(db, crashConfig(), faulty).Run(ctx, rest{}) })
	}
	a, b := pgtest.NewProxy(t, url), pgtest.NewProxy(t, url)
	mortal, dies := context.WithCancel(ctx)
	a.Kill(500, dies)
	run(mortal, a)
	run(ctx, b)
	b.Next(pgtest.LoseReply, pgtest.LoseCommit, pgtest.LoseReply, pgtest.LoseCommit)
	for left := fees - 50; left > 150; left -= 50 {
		awaitLeft(t, url, left)
		b.Cut()
	}
	if !a.Killed() {
		t.Error("the first scanner was to die meanwhile")
	}
	b.Refuse(true)
	c := pgtest.NewProxy(t, url)
	c.Next(pgtest.LoseReply)
	run(ctx, c)
	awaitLeft(t, url, 100)
	b.Refuse(false)
	awaitLeft(t, url, 0)
	stop()
	scanners.Wait()
	if b.Hits() != 4 || c.Hits() != 1 {
		t.Errorf("%d and %d faults happened", b.Hits(), c.Hits())
	}
	wantEachOnce(t, url, fees)
}
