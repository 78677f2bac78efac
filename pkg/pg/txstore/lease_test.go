package txstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
)

// connect opens a connection of the test's own, as an operator would.
func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// begin opens a transaction that ends with the test at the latest.
func begin(t *testing.T, address string) pgx.Tx {
	t.Helper()
	tx, err := connect(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func run(t *testing.T, tx pgx.Tx, sql string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// awaitBlocked returns once a statement of the application waits for a lock.
func awaitBlocked(t *testing.T, address, application string) {
	t.Helper()
	conn := connect(t, address)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE application_name = $1 AND datname = current_database()
				AND wait_event_type = 'Lock')`, application).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s never waited for a lock", application)
		}
	}
}

func TestRegisterIsRepeatableForOneChain(t *testing.T) {
	db := pgtest.DB(t)
	signer := txstoretest.Register(t, db)
	f := txstoretest.Acquire(t, db, signer, time.Minute)
	if err := txstore.NewLeases(db).Register(t.Context(), signer, txstoretest.ChainID); err != nil {
		t.Error(err)
	}
	if err := txstore.NewLeases(db).Renew(t.Context(), f, time.Minute); err != nil {
		t.Errorf("registering again disturbed the owner: %v", err)
	}
	if err := txstore.NewLeases(db).Register(t.Context(), signer, 97); err == nil {
		t.Error("the signer was registered for a second chain")
	}
}

// Rows that were written on another timeline, as after a replica was promoted or a backup restored, or in another
// cluster.
func TestDatabaseGoneBackInTimeIsRefused(t *testing.T) {
	for _, change := range []string{`timeline = timeline + 1`, `system_identifier = system_identifier + 1`} {
		address := pgtest.URL(t)
		db := txstoretest.Open(t, address, "sender")
		signer := txstoretest.Register(t, db)
		f := txstoretest.Acquire(t, db, signer, time.Minute)
		if _, err := txstore.NewLeases(db).TakeOver(t.Context(), f, 5); err != nil {
			t.Fatal(err)
		}
		if _, err := connect(t, address).Exec(t.Context(), `UPDATE keeper.signer SET `+change); err != nil {
			t.Fatal(err)
		}
		_, err := txstore.NewLeases(db).TakeOver(t.Context(), f, 5)
		if _, promoted := nonce.Promoted(err); !nonce.Behind(err) || promoted {
			t.Errorf("%s: taking over gives %v, promoted: %t", change, err, promoted)
		}
		if _, err := txstore.NewLeases(db).
			Resync(t.Context(), signer, nonce.ChainNonces{Finalized: 5, Latest: 5, Pending: 5}); err != nil {
			t.Fatal(err)
		}
		if c, err := txstore.NewLeases(db).TakeOver(t.Context(), txstoretest.Acquire(t, db, signer, time.Minute),
			5); err != nil ||
			c.Next != 5 {
			t.Errorf("%s: after a resync: %+v, %v", change, c, err)
		}
	}
}

// A database that is another, or is promoted or goes back under a running sender: the lease term ends with its next
// renewal, and the next one looks. A signer that is paused for it is left alone.
func TestTermEndsInAnotherDatabase(t *testing.T) {
	address := pgtest.URL(t)
	db := txstoretest.Open(t, address, "sender")
	signer := txstoretest.Register(t, db)
	f := txstoretest.Acquire(t, db, signer, time.Minute)
	for _, c := range []struct {
		change string
		lost   bool
	}{
		{"updated_at = clock_timestamp()", false},
		{"timeline = timeline - 1", true},
		{"timeline = timeline + 2", true},
		{"paused_reason = 'for a person'", false},
		{"paused_reason = NULL", true},
		{"timeline = timeline - 1", false},
		{"system_identifier = system_identifier + 1", true},
	} {
		if _, err := connect(t, address).Exec(t.Context(), `UPDATE keeper.signer SET `+c.change); err != nil {
			t.Fatal(err)
		}
		if err := txstore.NewLeases(db).Renew(t.Context(), f, time.Minute); lease.Lost(err) != c.lost ||
			!c.lost && err != nil {
			t.Errorf("%s: %v, lost: want %t", c.change, err, c.lost)
		}
	}
}

// A later timeline of the same database, as a promoted standby has, may have lost nothing, unless the chain is beyond
// what it gave out.
func TestPromotedStandbyIsTold(t *testing.T) {
	address := pgtest.URL(t)
	db := txstoretest.Open(t, address, "sender")
	f := txstoretest.Acquire(t, db, txstoretest.Register(t, db), time.Minute)
	if _, err := txstore.NewLeases(db).TakeOver(t.Context(), f, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, address).Exec(t.Context(), `UPDATE keeper.signer SET timeline = timeline - 1`); err != nil {
		t.Fatal(err)
	}
	for latest, may := range map[uint64]bool{4: true, 5: true, 6: false} {
		_, err := txstore.NewLeases(db).TakeOver(t.Context(), f, latest)
		if next, promoted := nonce.Promoted(err); !nonce.Behind(err) || promoted != may || may && next != 5 {
			t.Errorf("the chain at %d: %v; promoted: %t, next %d", latest, err, promoted, next)
		}
	}
}

// Who cannot begin yet tries again and again: the table of events, from which nothing is deleted, gets a row for what
// is new.
func TestTakeoverIsNotedOnce(t *testing.T) {
	address := pgtest.URL(t)
	db := txstoretest.Open(t, address, "sender")
	f := txstoretest.Acquire(t, db, txstoretest.Register(t, db), time.Minute)
	for _, latest := range []uint64{0, 0, 5, 5} {
		if _, err := txstore.NewLeases(db).TakeOver(t.Context(), f, latest); err != nil {
			t.Fatal(err)
		}
	}
	var noted int
	err := connect(t, address).QueryRow(t.Context(), `SELECT count(*) FROM keeper.signer_event
		WHERE what = 'take_over'`).Scan(&noted)
	if err != nil || noted != 3 {
		t.Errorf("%d takeovers are noted, %v; want the three that differ: at 0, from 0 to 5, at 5", noted, err)
	}
}

// S8: sessions in time zones a day apart judge a lease alike. (The pool asks for UTC; the statements must not depend on
// it.)
func TestLeaseIsBlindToTimeZones(t *testing.T) {
	address := pgtest.URL(t)
	signer := txstoretest.Register(t, txstoretest.Open(t, address, "setup"))
	acquireIn := func(zone string) (won bool) {
		t.Helper()
		conn := connect(t, address)
		if _, err := conn.Exec(t.Context(), `SELECT set_config('timezone', $1, false)`, zone); err != nil {
			t.Fatal(err)
		}
		owner := lease.NewOwner(zone)
		err := conn.QueryRow(t.Context(), pg.StatementTexts()["acquire lease"], signer[:], owner.ID, owner.Label,
			time.Minute.Microseconds()).Scan(&won, nil, nil, nil, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return won
	}
	if !acquireIn("Pacific/Niue") || acquireIn("Pacific/Kiritimati") {
		t.Error("a live lease was stolen by a session to the east")
	}
	expire(t, address)
	if !acquireIn("Pacific/Kiritimati") || acquireIn("Pacific/Niue") {
		t.Error("a live lease was stolen by a session to the west")
	}
	var zoneless int
	err := connect(t, address).QueryRow(t.Context(), `SELECT count(*) FROM information_schema.columns
		WHERE table_schema = 'keeper' AND data_type = 'timestamp without time zone'`).Scan(&zoneless)
	if err != nil || zoneless != 0 {
		t.Errorf("%d columns keep times without their zone, %v", zoneless, err)
	}
}

// expire ends every lease, as time does.
func expire(t *testing.T, address string) {
	t.Helper()
	if _, err := connect(t, address).
		Exec(t.Context(), `UPDATE keeper.signer_lease SET expires_at = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
}

// S10: a loser writes nothing, and neither waits for the owner nor makes the owner wait.
func TestLoserNeitherWritesNorLocks(t *testing.T) {
	address := pgtest.URL(t)
	db := txstoretest.Open(t, address, "sender")
	signer := txstoretest.Register(t, db)
	txstoretest.Acquire(t, db, signer, time.Minute)
	lose := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := txstore.NewLeases(db).Acquire(ctx, signer, lease.NewOwner("loser"), time.Minute)
		if !lease.Held(err) {
			t.Fatalf("got %v", err)
		}
	}
	before := rowVersion(t, address)
	lose()
	if after := rowVersion(t, address); before != after {
		t.Errorf("a loser touched the row: version %s became %s", before, after)
	}
	owner := begin(t, address) // a write of the owner's is under way
	run(t, owner, `SELECT FROM keeper.signer_lease WHERE signer = $1 FOR UPDATE`, signer[:])
	lose()
}

// rowVersion tells one version of the only lease row from another, and a locked one from one that never was.
func rowVersion(t *testing.T, address string) (version string) {
	t.Helper()
	err := connect(t, address).
		QueryRow(t.Context(), `SELECT ctid::text || ' ' || xmin::text || ' ' || xmax::text FROM keeper.signer_lease`).
		Scan(&version)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// S11: a statement that had to wait for the lease row judges it by the time at which it gets it, not by the time at
// which it began to wait.
func TestLeaseIsJudgedAfterTheWait(t *testing.T) {
	address := pgtest.URL(t)
	db := txstoretest.Open(t, address, "waiting")
	signer := txstoretest.Register(t, db)
	f := txstoretest.Acquire(t, db, signer, time.Minute)
	other := begin(t, address)
	run(t, other, `UPDATE keeper.signer_lease SET updated_at = clock_timestamp() WHERE signer = $1`, signer[:])
	renewed := make(chan error, 1)
	go func() { renewed <- txstore.NewLeases(db).Renew(t.Context(), f, time.Minute) }()
	awaitBlocked(t, address, "waiting")
	run(t, other, `UPDATE keeper.signer_lease SET expires_at = clock_timestamp() WHERE signer = $1`, signer[:])
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; !lease.Lost(err) {
		t.Errorf("a lease that ended during the wait was renewed: %v", err)
	}
}
