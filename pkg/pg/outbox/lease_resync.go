package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/pg"
)

// thisDatabase is which cluster this is, and on which timeline of its log. A promoted replica and a restored backup are
// on a new timeline.
const thisDatabase = `(SELECT system_identifier FROM pg_control_system()),
	('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::integer`

// tokenLeap is by how much a resync raises the token: more tenures than a lost stretch of time can have had.
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

// checkTime tells whether the store knows less than it once did: it is not the database it was, or the chain has passed
// numbers that it never gave out. Every transaction is stored before it is broadcast, so that the chain is ahead only
// of a store that has lost something, or of a key that others use.
func checkTime(ctx context.Context, tx pgx.Tx, signer chain.Address, stored nonce.Cursor, latest uint64) error {
	if err := checkIdentity(ctx, tx, signer); err != nil {
		return err
	}
	if latest <= stored.Next {
		return nil
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

// Untouched tells whether no nonce of a signer was ever given out by this database.
func (s Leases) Untouched(ctx context.Context, signer chain.Address) (bool, error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	var used bool
	if err := s.db.Pool().QueryRow(ctx, selectHistory.SQL(), signer[:]).Scan(&used); err != nil {
		return false, fmt.Errorf("asking for the history of signer %s: %w", signer, err)
	}
	return !used, nil
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
	return &nonce.BehindError{Signer: signer,
		Why: fmt.Sprintf("its rows are of system %d, timeline %d, and this is system %d, timeline %d",
			systemWas, timelineWas, system, timeline)}
}

// Resync implements nonce.Resyncer.
func (s Leases) Resync(ctx context.Context, signer chain.Address, seen nonce.ChainNonces) (cursor nonce.Cursor,
	err error) {
	if err := seen.Settled(); err != nil {
		return cursor, fmt.Errorf("resyncing signer %s: %w", signer, err)
	}
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.db.Pool(), func(tx pgx.Tx) error {
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
