package keeperctl

import (
	"context"
	"io"

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
)

// told runs a command and returns what it printed, or its error after "error: ".
func told(t *testing.T, do databaseCommand, db *pg.DB, args ...string) string {
	t.Helper()
	var out strings.Builder
	own := defaultConfig().Own
	own.Patience = 300 * time.Millisecond
	if err := do(t.Context(), db, own, args, printer{Writer: &out}); err != nil {
		return out.String() + "error: " + err.Error()
	}
	return out.String()
}

func wantTold(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%q is not in what was told:\n%s", p, got)
		}
	}
}

// DLY-6, DLY-8: an operator finds a parked job, reads why, and takes it up again.
func TestDelayedCommands(t *testing.T) {
	db := pgtest.DB(t)
	appointments := []delayed.Appointment{
		{Kind: delayed.CommissionRelease, Key: "fee", Payload: delayed.Release{Agent: "ann", Amount: chain.U64(5)},
			DueAt: time.Now()},
		{Kind: "other", Key: "far", DueAt: time.Now().Add(time.Hour)},
	}
	if _, err := db.Delayed().Add(t.Context(), appointments...); err != nil {
		t.Fatal(err)
	}
	wantTold(t, told(t, delayedJobs, db, "list", "done"), "no delayed jobs done")
	wantTold(t, told(t, delayedJobs, db, "retry", "2"), "error: delayed job 2 is not due before")
	wantTold(t, told(t, delayedJobs, db, "run"), "error: no planner has scanned within 300ms (is one running?)")

	metrics := delayed.NewMetrics(prometheus.NewRegistry())
	scanner := delayed.NewScanner(delayed.DefaultConfig(), "planner-1", db.Delayed(),
		[]delayed.Kind{delayed.Commissions{}}, nil, metrics, zerolog.Nop())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	bell := db.Delayed().Bell()
	if err := bell.Wait(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	var planner sync.WaitGroup
	planner.Go(func() {
		defer bell.Close()
		if bell.Wait(ctx, time.Minute) == nil {
			_, _ = scanner.Scan(ctx)
		}
	})
	var out strings.Builder
	if err := delayedJobs(t.Context(), db, defaultConfig().Own, []string{"run"}, printer{Writer: &out}); err != nil {
		t.Fatal(err)
	}
	wantTold(t, out.String(), "planner-1  1      0     1       1")
	stop()
	planner.Wait()

	wantTold(t, told(t, delayedJobs, db, "list", "parked"), "id  kind", "commission_release", "there is no such wallet")
	if list := told(t, delayedJobs, db, "list", "pending", "other"); strings.Contains(list, "commission") ||
		!strings.Contains(list, "far") {
		t.Errorf("listed\n%s", list)
	}
	wantTold(t, told(t, delayedJobs, db, "show", "1"), `"status": "parked"`, `"amount": "5"`, `"failedAttempts": 1`)
	wantTold(t, told(t, delayedJobs, db, "retry", "1"), `"status": "pending"`, `"failedAttempts": 0`)
	wantTold(t, told(t, delayedJobs, db, "cancel", "1"), `"calledOffAt"`)
	wantTold(t, told(t, delayedJobs, db, "retry", "1"), "error: delayed job 1 is not there, is done, or was called off")
	wantTold(t, told(t, delayedJobs, db, "show", "77"), "error: there is no delayed job 77")
	wantTold(t, told(t, delayedJobs, db, "show", "x"), `error: "x" is no id`)
	for _, args := range [][]string{nil, {"run", "1"}, {"show"}, {"dance"}} {
		wantTold(t, told(t, delayedJobs, db, args...), "error: usage: keeperctl delayed run")
	}
}

// DLY-2: what agents have, and that it adds up.
func TestWalletCommands(t *testing.T) {
	db := pgtest.DB(t)
	wantTold(t, told(t, wallets, db, "verify"), "no wallets")
	signer := chain.Address{0xa}
	block := chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}, TimeMs: 1}
	tx := chain.Tx{Hash: chain.Hash{1}, Block: block.Number, BlockHash: block.Hash}
	fee := perp.KeeperFee{Keeper: signer, Amount: chain.U64(120),
		Stamp: perp.Stamp{Block: block.Number, Log: 3, TxHash: tx.Hash}}
	pgtest.Hold(t, db, block, perp.Transaction{Tx: tx}, fee)
	ask := delayed.Booking{ChainID: 56, Owners: map[chain.Address]string{signer: "ann"}, Hold: time.Hour}
	if booked, err := db.Wallets().Book(t.Context(), ask); err != nil || booked.Fees != 1 {
		t.Fatalf("booked %+v, %v", booked, err)
	}
	wantTold(t, told(t, wallets, db, "verify"), "ann    true   0        0        0              120     120")
	wantTold(t, told(t, wallets, db), "error: usage: keeperctl wallet verify")
	var nowhere failingWriter
	if err := wallets(t.Context(), db, defaultConfig().Own, []string{"verify"}, printer{Writer: nowhere}); err == nil {
		t.Error("nothing was written, and nobody complained")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
