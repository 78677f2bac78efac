package pg_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/postgres"
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
			Amount: perp.U64(uint64(i + 1)), Stamp: stamp})
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
		b.CutAll()
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

// childVariable makes this test binary a process that scans a database until it is killed.
const childVariable = "KEEPER_TEST_SCANS"

// TestScannerProcess is no test but the process that TestDelayedThroughKills starts.
func TestScannerProcess(t *testing.T) {
	url := os.Getenv(childVariable)
	if url == "" {
		t.Skip("only a child process runs this")
	}
	metrics := delayed.NewMetrics(prometheus.NewRegistry())
	s := delayed.NewScanner(crashConfig(), fmt.Sprint(os.Getpid()), open(t, url).Delayed(), []delayed.Kind{faulty}, nil,
		metrics, zerolog.Nop())
	_ = s.Run(t.Context(), rest{})
}

// DLY-5, DLY-6: 10 000 releases, two processes, one of them killed with -9 in the middle and started again, and the
// server restarted. KEEPER_LONG=1 go test ./pkg/pg -run TestDelayedThroughKills -v.
func TestDelayedThroughKills(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("takes a minute; set KEEPER_LONG=1")
	}
	const fees = 10_000
	home := reachable(t)
	server := startServer(t, postgres.Config{DataDir: home})
	url := server.URL("")
	db := open(t, url)
	must(t, db.Migrate(t.Context()))
	earn(t, db, fees)
	began := time.Now()
	first, second := scanProcess(t, url), scanProcess(t, url)

	awaitLeft(t, url, 8000)
	kill(t, first)
	awaitLeft(t, url, 6500)
	first = scanProcess(t, url)
	awaitLeft(t, url, 5000)
	port := portOf(t, url)
	must(t, server.Stop())
	startServer(t, postgres.Config{DataDir: home, Port: port})
	awaitLeft(t, url, 3000)
	kill(t, second)
	awaitLeft(t, url, 0)
	t.Logf("%d releases in %s", fees, time.Since(began).Round(time.Millisecond))
	kill(t, first)
	wantEachOnce(t, url, fees)
	t.Logf("scans: %s", query[string](t, url, "SELECT string_agg(scanner || ' ended at ' || finished_at, ', ') FROM "+
		"keeper.delayed_scan"))
}

// reachable is a directory that the server's user can come to: the folders that the tests' own directories lie in are
// closed to others.
func reachable(t *testing.T) string {
	t.Helper()
	//nolint:usetesting // t.TempDir lies in a folder that is closed to the server's user
	dir, err := os.MkdirTemp("", "delayed-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startServer(t *testing.T, cfg postgres.Config) *postgres.Server {
	t.Helper()
	server, err := postgres.Start(cfg)
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

func portOf(t *testing.T, url string) int {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	must(t, err)
	return int(cfg.Port)
}

func scanProcess(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestScannerProcess$")
	cmd.Env = append(os.Environ(), childVariable+"="+url)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// kill ends a process as kill -9 does.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil || errors.Is(err, exec.ErrNotFound) {
		t.Errorf("the process had ended by itself: %v", err)
	}
}
