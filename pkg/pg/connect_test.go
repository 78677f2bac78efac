package pg_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport/transporttest"
)

// opened is a database at an address, with statements that are bounded by a minute only.
func opened(t *testing.T, address string) *pg.DB {
	t.Helper()
	cfg := pg.DefaultConfig()
	cfg.URL, cfg.StatementTimeout = secret.MustURL(address), time.Minute
	db, err := pg.Open(t.Context(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// A database is asked again within five seconds, whatever has become of the connections to it, and although statements
// may take longer.
func TestWire(t *testing.T) {
	t.Parallel()
	transporttest.Wire(t, func(t *testing.T) (*transporttest.Relay, func() error) {
		relay, db := relayed(t)
		crowd(t, db)
		return relay, func() error { return db.Health(t.Context()) }
	})
}

// relayed is a fresh database behind a relay.
func relayed(t *testing.T) (*transporttest.Relay, *pg.DB) {
	t.Helper()
	address := pgtest.URL(t)
	before, host, _ := strings.Cut(address, "@")
	host, after, _ := strings.Cut(host, "/")
	relay := transporttest.NewRelay(t, host)
	return relay, opened(t, before+"@"+relay.Addr()+"/"+after)
}

// crowd opens as many connections as there may be.
func crowd(t *testing.T, db *pg.DB) {
	t.Helper()
	var all sync.WaitGroup
	for range pg.DefaultConfig().MaxConns {
		all.Go(func() {
			if _, err := db.Pool().Exec(t.Context(), "SELECT pg_sleep(0.2)"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// A server that works on a statement says nothing, and is waited for: it is asked about over another connection.
func TestSlowStatementsAreWaitedFor(t *testing.T) {
	t.Parallel()
	_, db := relayed(t)
	if _, err := db.Pool().Exec(t.Context(), "SELECT pg_sleep(7)"); err != nil {
		t.Error(err)
	}
}

// Who only listens finds out that its connection is forgotten.
func TestListenerLeavesADeadConnection(t *testing.T) {
	t.Parallel()
	relay, db := relayed(t)
	l := db.Listener()
	defer l.Close()
	if err := l.Wait(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	relay.Freeze()
	connections := relay.Accepted()
	begun := time.Now()
	for relay.Accepted() == connections && time.Since(begun) < 2*transporttest.Patience {
		if err := l.Wait(t.Context(), 200*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > transporttest.Patience {
		t.Errorf("it listened to a dead connection for %s", took)
	}
}

// After a standby was promoted behind the one address, all connections lead to it as soon as any of them was used,
// whether it wrote or only read; nobody takes the old primary for one that can be written to.
func TestPromotedStandby(t *testing.T) {
	t.Parallel()
	pair := pgtest.NewPair(t)
	pair.Exec("CREATE TABLE keeper.note (n integer)")
	writes, reads := opened(t, pair.URL()), opened(t, pair.URL())
	crowd(t, writes)
	crowd(t, reads)
	pair.Promote()
	for name, use := range map[string]struct {
		db        *pg.DB
		statement string
	}{
		"writing": {writes, "INSERT INTO keeper.note VALUES (1)"},
		"reading": {reads, "SELECT FROM keeper.note"},
	} {
		begun := time.Now()
		for moved := 0; moved < 2*pg.DefaultConfig().MaxConns; {
			err := use.db.Write(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
				var old bool
				if _, err := tx.Exec(ctx, use.statement); err != nil {
					return err
				}
				err := tx.QueryRow(ctx, "SELECT current_setting('default_transaction_read_only')::boolean").Scan(&old)
				if moved++; old {
					moved = 0
				}
				return err
			})
			if took := time.Since(begun); took > transporttest.Patience {
				t.Fatalf("%s: still at the old primary after %s: %v", name, took, err)
			}
		}
	}
}

// A server of before version 14, or behind a pooler, does not say that it only reads: the first write that it refuses
// has every connection opened anew.
func TestRefusedWriteLeavesTheServer(t *testing.T) {
	t.Parallel()
	db := opened(t, pgtest.URL(t))
	crowd(t, db)
	pids := func() (all []uint32) {
		for _, c := range db.Pool().AcquireAllIdle(t.Context()) {
			all = append(all, c.Conn().PgConn().PID())
			c.Release()
		}
		return all
	}
	before := pids()
	err := db.Write(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SET TRANSACTION READ ONLY; CREATE TABLE keeper.note ()")
		return err
	})
	if !pg.HasCode(err, "25006") || len(before) < 2 {
		t.Fatalf("%d connections, %v", len(before), err)
	}
	old := func(pid uint32) bool { return slices.Contains(before, pid) }
	for begun := time.Now(); slices.ContainsFunc(pids(), old); {
		if time.Since(begun) > time.Minute { // it hangs
			t.Fatal("connections are kept")
		}
	}
}

// A server that only reads is refused, in words that say so.
func TestReadOnlyServersAreRefused(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pgtest.Tamper(t, address, `DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() ||
		' SET default_transaction_read_only = on'; END $$`)
	if err := opened(t, address).Health(t.Context()); err == nil || !strings.Contains(err.Error(), "only reads") {
		t.Errorf("%v", err)
	}
}
