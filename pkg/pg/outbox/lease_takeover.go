package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/pg"
)

var (
	lockLease = pg.Register("lock lease", `SELECT next_nonce FROM keeper.signer_lease
		WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp() FOR UPDATE`)
	releaseHeld = pg.Register("release held nonces",
		`UPDATE keeper.signer_nonce_allocation n SET state = 'RELEASED', updated_at = clock_timestamp()
		WHERE signer = $1 AND state = 'HELD' AND NOT EXISTS (SELECT FROM keeper.tx_attempt a WHERE a.signer = n.signer
			AND a.nonce = n.nonce)`)
	selectReleased = pg.Register("released nonces",
		`SELECT nonce FROM keeper.signer_nonce_allocation WHERE signer = $1 AND state = 'RELEASED' ORDER BY nonce`)
	moveCursor = pg.Register("move cursor",
		`UPDATE keeper.signer_lease SET next_nonce = $2, updated_at = clock_timestamp() WHERE signer = $1`)
	insertEvent = pg.Register("signer event",
		`INSERT INTO keeper.signer_event (signer, token, what, detail) VALUES ($1, $2, $3, $4)`)
)

// TakeOver implements nonce.Store. An intent whose number was held is still queued: it keeps its place.
func (s Leases) TakeOver(ctx context.Context, f lease.Fence, latest uint64) (cursor nonce.Cursor, err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.db.Pool(), func(tx pgx.Tx) error {
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
		_, err = tx.Exec(ctx, insertEvent.SQL(), f.Signer[:], f.Token, "take_over", detail)
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
	rows, err := tx.Query(ctx, selectReleased.SQL(), f.Signer[:])
	if err != nil {
		return stored, fmt.Errorf("listing released nonces: %w", err)
	}
	if stored.Released, err = pgx.CollectRows(rows, pgx.RowTo[uint64]); err != nil {
		return stored, fmt.Errorf("listing released nonces: %w", err)
	}
	return stored, nil
}
