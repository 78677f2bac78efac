package txstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
)

var (
	lockLease = pg.Register("lock lease", `SELECT next_nonce FROM keeper.signer_lease
		WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp() FOR UPDATE`)
	releaseHeld = pg.Register("release held nonces",
		`UPDATE keeper.signer_nonce_allocation n SET state = 'RELEASED', updated_at = clock_timestamp()
		WHERE signer = $1 AND state = 'HELD' AND NOT EXISTS (SELECT FROM keeper.signed_tx a WHERE a.signer = n.signer
			AND a.nonce = n.nonce)`)
	selectReleased = pg.Register("released nonces",
		`SELECT nonce FROM keeper.signer_nonce_allocation WHERE signer = $1 AND state = 'RELEASED' ORDER BY nonce`)
	moveCursor = pg.Register("move cursor",
		`UPDATE keeper.signer_lease SET next_nonce = $2, updated_at = clock_timestamp() WHERE signer = $1`)
	insertEvent = pg.Register("signer event",
		`INSERT INTO keeper.signer_event (signer, token, what, detail) VALUES ($1, $2, $3, $4)`)
	// A lease term that cannot begin, for want of a second endpoint, is tried again twice a second: that is noted once.
	insertTakeover = pg.Register("signer event of a takeover", `
		INSERT INTO keeper.signer_event (signer, token, what, detail) SELECT $1, $2, 'take_over', $3
		WHERE NOT EXISTS (
			SELECT FROM keeper.signer_event WHERE signer = $1 AND token = $2 AND what = 'take_over' AND detail = $3)`)
)

// TakeOver implements nonce.Store. An intent whose number was held is still queued: it keeps its place.
func (s Leases) TakeOver(ctx context.Context, f lease.Fence, latest uint64) (cursor nonce.Cursor, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		stored, err := openAccount(ctx, tx, f)
		if err != nil {
			return err
		}
		if err := checkTime(ctx, tx, f.Signer, stored, latest); err != nil {
			return err
		}
		cursor = nonce.Begin(stored, latest)
		if _, err := tx.Exec(ctx, moveCursor.SQL(), f.Signer[:], cursor.Next); err != nil {
			return fmt.Errorf("moving the cursor: %w", err)
		}
		detail := fmt.Sprintf("next nonce: stored %d, chain %d, cursor %d; released %v", stored.Next, latest,
			cursor.Next, cursor.Released)
		_, err = tx.Exec(ctx, insertTakeover.SQL(), f.Signer[:], f.Token, detail)
		return err
	})
	if err != nil && !lease.Lost(err) {
		err = fmt.Errorf("taking over signer %s: %w", f.Signer, err)
	}
	return cursor, err
}

// openAccount locks the lease until the transaction ends, releases what was held without a signature, and returns what
// is stored of the cursor.
func openAccount(ctx context.Context, tx pgx.Tx, f lease.Fence) (stored nonce.Cursor, err error) {
	err = tx.QueryRow(ctx, lockLease.SQL(), f.Signer[:], f.Owner, f.Token).Scan(&stored.Next)
	if errors.Is(err, pgx.ErrNoRows) {
		return stored, &lease.LostError{Fence: f, Op: "take_over"}
	}
	if err != nil {
		return stored, fmt.Errorf("locking the lease: %w", err)
	}
	if _, err := tx.Exec(ctx, releaseHeld.SQL(), f.Signer[:]); err != nil {
		return stored, fmt.Errorf("releasing held nonces: %w", err)
	}
	stored.Released, err = pg.Select(ctx, tx, pgx.RowTo[uint64], selectReleased.SQL(), f.Signer[:])
	if err != nil {
		return stored, fmt.Errorf("listing released nonces: %w", err)
	}
	return stored, nil
}

// thisDatabase is which cluster this is, and on which timeline of its log. A promoted replica and a restored backup are
// on a new timeline.
const thisDatabase = `(SELECT system_identifier FROM pg_control_system()),
	('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::integer`

// tokenLeap is by how much a resync raises the token: more lease terms than a lost stretch of time can have had.
const tokenLeap = 1 << 20

var (
	compareIdentity = pg.Register("compare identity",
		`SELECT s.system_identifier, s.timeline, here.* FROM keeper.signer s,
		(SELECT `+thisDatabase+`) AS here (system_identifier, timeline) WHERE s.signer = $1`)
	selectHistory = pg.Register("history of signer",
		`SELECT EXISTS (SELECT FROM keeper.signer_nonce_allocation WHERE signer = $1)`)
	resyncLease = pg.Register("resync lease",
		`UPDATE keeper.signer_lease SET owner = $2, owner_label = 'resync', fencing_token = fencing_token + $3,
		expires_at = '-infinity', next_nonce = greatest(next_nonce, $4), updated_at = clock_timestamp()
		WHERE signer = $1 RETURNING fencing_token, next_nonce`)
	resyncSigner = pg.Register("resync signer",
		`UPDATE keeper.signer s SET system_identifier = here.system_identifier, timeline = here.timeline,
		expected_below = $2, paused_reason = NULL, resynced_at = clock_timestamp(), updated_at = clock_timestamp()
		FROM (SELECT `+thisDatabase+`) AS here (system_identifier, timeline) WHERE s.signer = $1`)
)

// checkTime reports whether the store knows less than it once did: it is not the database it was, or the chain has
// passed numbers that it never gave out. Every transaction is stored before it is broadcast, so that the chain is ahead
// only of a store that has lost something, or of a key that others use.
func checkTime(ctx context.Context, tx pgx.Tx, signer chain.Address, stored nonce.Cursor, latest uint64) error {
	identity := checkIdentity(ctx, tx, signer)
	if behind, is := errors.AsType[*nonce.BehindError](identity); is {
		behind.Promoted, behind.Next = behind.Promoted && latest <= stored.Next, stored.Next
	}
	if identity != nil || latest <= stored.Next {
		return identity
	}
	used := stored.Next > 0
	if !used {
		if err := tx.QueryRow(ctx, selectHistory.SQL(), signer[:]).Scan(&used); err != nil {
			return fmt.Errorf("asking for the history of signer %s: %w", signer, err)
		}
	}
	if !used {
		return nil // a signer that is new here may have a past elsewhere
	}
	return &nonce.BehindError{Signer: signer,
		Why: fmt.Sprintf("the chain is at nonce %d, and only those below %d were given out here", latest, stored.Next)}
}

// Untouched reports whether no nonce of a signer was ever given out by this database.
func (s Leases) Untouched(ctx context.Context, signer chain.Address) (bool, error) {
	used, err := pg.One(ctx, s.db, fmt.Sprintf("asking for the history of signer %s", signer), pgx.RowTo[bool],
		selectHistory.SQL(), signer[:])
	return !used, err
}

// checkIdentity compares the database with the one that the signer's rows were last known whole in.
func checkIdentity(ctx context.Context, tx pgx.Tx, signer chain.Address) error {
	var systemWas, system int64
	var timelineWas, timeline int32
	if err := tx.QueryRow(ctx, compareIdentity.SQL(), signer[:]).
		Scan(&systemWas, &timelineWas, &system, &timeline); err != nil {
		return fmt.Errorf("comparing the database with the one signer %s knows: %w", signer, err)
	}
	if systemWas == system && timelineWas == timeline {
		return nil
	}
	return &nonce.BehindError{Signer: signer, Promoted: systemWas == system && timelineWas < timeline,
		Why: fmt.Sprintf("its rows are of system %d, timeline %d, and this is system %d, timeline %d",
			systemWas, timelineWas, system, timeline)}
}

// Resync implements nonce.Resyncer.
func (s Leases) Resync(ctx context.Context, signer chain.Address, seen nonce.ChainNonces) (cursor nonce.Cursor,
	err error) {
	if err := seen.Settled(); err != nil {
		return cursor, fmt.Errorf("resyncing signer %s: %w", signer, err)
	}
	err = s.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var token int64
		err := tx.QueryRow(ctx, resyncLease.SQL(), signer[:], uuid.Nil, tokenLeap, seen.Latest).
			Scan(&token, &cursor.Next)
		if errors.Is(err, pgx.ErrNoRows) {
			return pg.Refusef("signer %s is not registered", signer)
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, resyncSigner.SQL(), signer[:], seen.Latest); err != nil {
			return err
		}
		detail := fmt.Sprintf("chain at nonce %d, cursor %d, token %d", seen.Latest, cursor.Next, token)
		_, err = tx.Exec(ctx, insertEvent.SQL(), signer[:], token, "resync", detail)
		return err
	})
	if err != nil {
		return nonce.Cursor{}, fmt.Errorf("resyncing signer %s: %w", signer, err)
	}
	return cursor, nil
}
