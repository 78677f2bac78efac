package txstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/txmgr/lease"
)

// An owner's session is a connection that does nothing but hold an advisory lock, shared, so that the owner's next
// session can take it while the server still has the one before. The server frees it as soon as the process's sockets
// are closed, whichever way that came.

// lockOf is the key of an owner's lock, in hexadecimal digits.
func lockOf(owner string) string { return `replace(left((` + owner + `)::text, 18), '-', '')` }

// present reports whether an owner has a session in this database.
func present(owner string) string {
	return `EXISTS (SELECT FROM pg_locks k WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 1
		AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND k.classid = ('x' || left(` + lockOf(owner) + `, 8))::bit(32)::bigint::oid
		AND k.objid = ('x' || right(` + lockOf(owner) + `, 8))::bit(32)::bigint::oid)`
}

// holderGone is true, in a row of the lease, when its holder had a session and has none.
var holderGone = `coalesce(present = owner, false) AND expires_at > clock_timestamp() AND NOT ` + present("owner")

var (
	// No lock is taken in a server process of a pooler's: it would outlive this one.
	beginSession = pg.Register("begin session", `SELECT pg_backend_pid(), CASE WHEN pg_backend_pid() = $2::bigint
		THEN pg_try_advisory_lock_shared(('x' || `+lockOf("$1::uuid")+`)::bit(64)::bigint) ELSE false END`)
	checkSession = pg.Register("check session", `SELECT pg_backend_pid(), `+present("$1::uuid"))
	// For leases that were taken before there was this session. Who has seen the owner gone finds that it has written.
	markPresent = pg.Register("mark present", `UPDATE keeper.signer_lease SET present = owner,
			updated_at = clock_timestamp()
		WHERE owner = $1 AND expires_at > clock_timestamp()`)
	missHolder = pg.Register("miss holder", `SELECT owner, fencing_token, updated_at, `+holderGone+`
		FROM keeper.signer_lease WHERE signer = $1`)
	// Whoever waited for the row while its holder wrote it finds another time in it.
	succeedHolder = pg.Register("succeed holder", `WITH won AS (
		UPDATE keeper.signer_lease SET fencing_token = fencing_token + 1, acquired_at = clock_timestamp(), owner = $2,
			owner_label = $3, expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond',
			updated_at = clock_timestamp(), present = CASE WHEN `+present("$2::uuid")+` THEN $2::uuid END
		WHERE signer = $1 AND owner = $5 AND fencing_token = $6 AND updated_at = $7 AND present = owner
			AND NOT `+present("$5::uuid")+`
		RETURNING signer, fencing_token), told AS (
		INSERT INTO keeper.signer_event (signer, token, what, detail)
			SELECT signer, fencing_token, 'holder_gone', $8 FROM won)
		SELECT fencing_token FROM won`)
)

// ErrPooled means that the database is reached through a pooler, behind which a session does not show that a process
// lives.
var ErrPooled = errors.New("the database is reached through a pooler")

// checkEvery is how often a session is looked after: within a [lease.Moment] of its end there is another one.
const checkEvery = lease.Moment / 2

// Attend keeps a session by which others can tell that the owner lives, until ctx ends. A session that is lost is begun
// again, and ends no lease term. The only other error is [ErrPooled].
func (s Leases) Attend(ctx context.Context, owner lease.Owner) error {
	err := retry.Do(ctx, retry.Policy{Initial: 10 * time.Millisecond, Max: 200 * time.Millisecond},
		func(ctx context.Context) error {
			err := s.session(ctx, owner.ID)
			if errors.Is(err, ErrPooled) {
				return retry.Stop(err)
			}
			s.absences.Forget(time.Now())
			return err
		})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// session is one connection's life.
func (s Leases) session(ctx context.Context, owner uuid.UUID) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeSession(conn)
	if err := askSession(ctx, conn, beginSession, owner, int64(conn.PgConn().PID())); err != nil {
		return err
	}
	if _, err := s.db.Run(ctx, "saying that there is a session", markPresent.SQL(), owner); err != nil {
		return err
	}
	for err == nil {
		if err = sleepOn(ctx, conn); err == nil {
			err = askSession(ctx, conn, checkSession, owner)
		}
	}
	return err
}

func (s Leases) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	pooled, err := s.db.Pool().Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return pooled.Hijack(), nil // for all its life; the pool may open another one in its place
}

// askSession asks for the lock, or whether it is there. The server has to be the one that has greeted this process.
func askSession(ctx context.Context, conn *pgx.Conn, look *pg.Statement, of ...any) error {
	ctx, cancel := context.WithTimeout(ctx, lease.Moment)
	defer cancel()
	var server uint32
	var has bool
	switch err := conn.QueryRow(ctx, look.SQL(), of...).Scan(&server, &has); {
	case err != nil:
		return fmt.Errorf("looking after the session: %w", err)
	case server != conn.PgConn().PID():
		return ErrPooled
	case !has:
		return errors.New("the session has no lock")
	case pg.OnlyReads(conn):
		return errors.New("the session is at a server that only reads")
	}
	return nil
}

// sleepOn rests for a while, less if the connection ends.
func sleepOn(ctx context.Context, conn *pgx.Conn) error {
	rest, cancel := context.WithTimeout(ctx, checkEvery)
	defer cancel()
	for {
		_, err := conn.WaitForNotification(rest)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case conn.IsClosed():
			return fmt.Errorf("the session has ended: %w", err)
		case rest.Err() != nil:
			return nil
		}
	}
}

// closeSession closes the connection, within a moment at most; a server that does not listen will notice anyway.
func closeSession(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// Gone reports whether the holder of a signer's lease has been gone for a [lease.Moment], at the second look at least:
// who asks for the lease then gets it.
func (s Leases) Gone(ctx context.Context, signer chain.Address) (bool, error) {
	var seen lease.Sighting
	gone, err := pg.One(ctx, s.db, "looking for the holder of a lease",
		pg.Columns(func(gone *bool) []any { return []any{&seen.Owner, &seen.Token, &seen.Written, gone} }),
		missHolder.SQL(), signer[:])
	if err != nil {
		return false, err
	}
	if !gone {
		s.absences.End(signer)
		return false, nil
	}
	return s.absences.Lasting(signer, seen, time.Now()), nil
}

// succeed takes the lease from a holder whose session has been gone for long enough. Otherwise the error is the one
// that was given.
func (s Leases) succeed(ctx context.Context, held *lease.HeldError, seen lease.Sighting, owner lease.Owner,
	ttl time.Duration) (lease.Fence, error) {
	f := lease.Fence{Signer: held.Signer, Owner: owner.ID}
	if !s.absences.Lasting(f.Signer, seen, time.Now()) {
		return lease.Fence{}, held
	}
	detail := fmt.Sprintf("%s (%s), which had it under token %d, has no session any more", held.Holder, seen.Owner,
		seen.Token)
	err := s.db.Pool().QueryRow(ctx, succeedHolder.SQL(), f.Signer[:], owner.ID, owner.Label, ttl.Microseconds(),
		seen.Owner, seen.Token, seen.Written, detail).Scan(&f.Token)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // it has written, or has a session again, or somebody was faster
		s.absences.End(f.Signer)
		return lease.Fence{}, held
	case err != nil:
		return lease.Fence{}, fmt.Errorf("succeeding a holder that is gone: %w", err)
	}
	return f, nil
}
