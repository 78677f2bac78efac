package txstore_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/lease"
)

// How many of twenty healthy holders lose their leases when the database stands still for a while, by the length of the
// lease: what a shorter lease would cost. KEEPER_LONG=1.
func TestPausesOfTheDatabase(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("measures for minutes: run it with KEEPER_LONG=1")
	}
	for _, pause := range []time.Duration{0, time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second,
		5 * time.Second} {
		for _, ttl := range []time.Duration{lease.MinTTL, lease.DefaultTTL} {
			t.Run(fmt.Sprintf("lease %s, pause %s", ttl, pause), func(t *testing.T) {
				t.Parallel()
				const holders = 20
				lost := lostIn(t, holders, ttl, pause)
				t.Logf("%d of %d holders lost theirs", lost, holders)
				if ttl == lease.DefaultTTL && pause <= 2*time.Second && lost > 0 {
					t.Error("too many")
				}
			})
		}
	}
}

// lostIn is how many holders lose their leases while nobody gets at them for a while.
func lostIn(t *testing.T, holders int, ttl, pause time.Duration) int64 {
	t.Helper()
	address := pgtest.URL(t)
	cfg := pg.DefaultConfig()
	cfg.URL, cfg.MaxConns = secret.MustURL(address), holders
	cfg.ConnectTimeout, cfg.StatementTimeout = ttl/4, ttl/4 // as senders have it
	db, err := pg.Open(t.Context(), cfg, "holders")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m, leases := lease.NewMetrics(prometheus.NewRegistry()), txstore.NewLeases(db)
	var group sync.WaitGroup
	var lost atomic.Int64
	for i := range holders {
		time.Sleep(ttl / 3 / time.Duration(holders)) // renewals come evenly
		signer := chain.Address{byte(i + 1)}
		if err := leases.Register(ctx, signer, txstoretest.ChainID); err != nil {
			t.Fatal(err)
		}
		term, err := lease.Acquire(ctx, leases, signer, lease.NewOwner("holder"), ttl, m)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			if lease.Lost(term.Keep(ctx)) {
				lost.Add(1)
			}
		})
	}
	time.Sleep(ttl)
	if pause > 0 {
		still := begin(t, address)
		run(t, still, `LOCK TABLE keeper.signer_lease`)
		time.Sleep(pause)
		if err := still.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(ttl)
	cancel()
	group.Wait()
	return lost.Load()
}
