package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

var (
	// The fused statement. Each step takes its rows from the one before, so that all of them happen or none: the intent is locked, then the lease row
	// by the update that advances its cursor (this lock is the fence), then number, state and bytes are written. Were a step to find nothing after
	// the cursor has moved, the division by zero in the end takes everything back. The commit waits for the disk, whatever the server's default.
	claimIntent = register("claim intent", `WITH intent AS (
		SELECT id, kind FROM keeper.tx_intent WHERE id = $4 AND signer = $1 AND state = ANY ($14) FOR UPDATE
	), place AS MATERIALIZED (
		SELECT id, kind, CASE WHEN kind = 'liquidation' THEN (
			SELECT min(s) FROM generate_series(1, $13::integer) s
			WHERE NOT EXISTS (SELECT FROM keeper.tx_intent f WHERE f.slot = s AND f.state IN `+inFlightStates+`)) END AS slot
		FROM intent
	), advanced AS (
		UPDATE keeper.signer_lease l SET next_nonce = greatest(l.next_nonce, $5::bigint + 1), updated_at = clock_timestamp()
		FROM place
		WHERE l.signer = $1 AND l.owner = $2 AND l.fencing_token = $3 AND l.expires_at > clock_timestamp() AND l.next_nonce = $6
			AND ($5::bigint = $6 OR EXISTS (SELECT FROM keeper.signer_nonce_allocation WHERE signer = $1 AND nonce = $5 AND state = 'RELEASED'))
			AND (place.kind <> 'liquidation' OR place.slot IS NOT NULL)
			AND (SELECT count(*) FROM keeper.tx_intent f WHERE f.signer = $1 AND f.state IN `+inFlightStates+`) < $12::integer
		RETURNING place.id, place.slot
	), allocated AS (
		INSERT INTO keeper.signer_nonce_allocation AS n (signer, nonce, state, intent, token)
		SELECT $1, $5, 'SIGNED', id, $3 FROM advanced
		ON CONFLICT (signer, nonce) DO UPDATE SET state = 'SIGNED', intent = excluded.intent, token = excluded.token, updated_at = clock_timestamp()
			WHERE n.state = 'RELEASED'
		RETURNING n.intent
	), signed AS (
		UPDATE keeper.tx_intent t SET state = 'SIGNED', nonce = $5, token = $3, slot = advanced.slot, updated_at = clock_timestamp()
		FROM allocated JOIN advanced ON advanced.id = allocated.intent
		WHERE t.id = allocated.intent
		RETURNING t.id
	), stored AS (
		INSERT INTO keeper.tx_attempt (hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token)
		SELECT $7, id, $1, $5, 1, 'EXEC', $8, $9, $10, $11, $3 FROM signed
		RETURNING intent
	)
	SELECT (SELECT count(*) FROM stored), set_config('synchronous_commit', 'on', true),
		1 / ((SELECT count(*) FROM advanced) = (SELECT count(*) FROM stored))::integer`)

	// Why a claim found nothing to do: read afterwards, so it explains and decides nothing.
	whyNotClaimed = register("why not claimed", `SELECT
		EXISTS (SELECT FROM keeper.signer_lease WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp()),
		coalesce((SELECT state FROM keeper.tx_intent WHERE id = $4 AND signer = $1), ''),
		(SELECT next_nonce FROM keeper.signer_lease WHERE signer = $1),
		(SELECT count(*) FROM keeper.tx_intent WHERE signer = $1 AND state IN `+inFlightStates+`)`)
	selectClaimed = register("claimed intent", `SELECT hash FROM keeper.tx_attempt WHERE intent = $1 ORDER BY seq LIMIT 1`)
)

// The unique indexes that keep the keeper's limits.
const (
	indexKeyInFlight        = "tx_intent_key_in_flight"
	indexLiquidationAccount = "tx_intent_liquidation_account"
	indexLiquidationSlot    = "tx_intent_liquidation_slot"
)

// Claim implements txm.Claims.
func (s Intents) Claim(ctx context.Context, f lease.Fence, c txm.Claim) error {
	ctx, cancel := s.db.bounded(ctx)
	defer cancel()
	var stored, check int
	var setting string
	tx := c.Tx
	err := s.db.pool.QueryRow(ctx, claimIntent.sql(), f.Signer[:], f.Owner, f.Token, c.Intent, tx.Nonce, c.Cursor, tx.Hash[:], tx.Raw, tx.Tip, tx.Cap, tx.Gas,
		c.Limits.Signer, c.Limits.Liquidations, predecessors(txm.Signed)).Scan(&stored, &setting, &check)
	switch {
	case err != nil:
		return claimFailed(err)
	case stored == 0:
		return s.whyNot(ctx, f, c)
	}
	return nil
}

// claimFailed tells the limits that the unique indexes keep from other failures.
func claimFailed(err error) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == codeUniqueViolation {
		switch refused.ConstraintName {
		case indexKeyInFlight:
			return &txm.RefusedError{Op: "claim", Why: txm.KeyBusy}
		case indexLiquidationAccount:
			return &txm.RefusedError{Op: "claim", Why: txm.AccountBusy}
		case indexLiquidationSlot:
			return &txm.RefusedError{Op: "claim", Why: txm.KeeperFull}
		}
	}
	return fmt.Errorf("claiming: %w", err)
}

func (s Intents) whyNot(ctx context.Context, f lease.Fence, c txm.Claim) error {
	var held bool
	var state txm.State
	var cursor uint64
	var flying int
	err := s.db.pool.QueryRow(ctx, whyNotClaimed.sql(), f.Signer[:], f.Owner, f.Token, c.Intent).Scan(&held, &state, &cursor, &flying)
	refused := &txm.RefusedError{Op: "claim"}
	switch {
	case err != nil:
		return fmt.Errorf("asking why a claim was refused: %w", err)
	case !held:
		return &lease.LostError{Fence: f, Op: "claim"}
	case state != txm.Queued:
		refused.Why = txm.Moved
	case cursor != c.Cursor || c.Tx.Nonce != c.Cursor:
		refused.Why = txm.CursorMoved
	case flying >= c.Limits.Signer:
		refused.Why = txm.SignerFull
	default:
		refused.Why = txm.KeeperFull
	}
	return refused
}

// Claimed implements txm.Claims.
func (s Intents) Claimed(ctx context.Context, intent int64) (chain.Hash, error) {
	ctx, cancel := s.db.bounded(ctx)
	defer cancel()
	var hash []byte
	err := s.db.pool.QueryRow(ctx, selectClaimed.sql(), intent).Scan(&hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return chain.Hash{}, nil
	}
	if err != nil {
		return chain.Hash{}, fmt.Errorf("looking up the transaction of intent %d: %w", intent, err)
	}
	return hashOf(hash), nil
}
