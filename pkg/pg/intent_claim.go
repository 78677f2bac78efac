package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

var (
	// The fused statement, for one claim or several. Each step takes its rows from the one before, so that all of them happen or none: the intents are
	// locked, then the lease row by the update that advances its cursor (this lock is the fence), then numbers, states and bytes are written. Were a
	// step to find less after the cursor has moved, the division by zero in the end takes everything back. The commit waits for the disk, whatever the
	// server's default.
	claimIntents = register("claim intents", `WITH wanted AS (
		SELECT intent, nonce, hash, raw, tip, cap, gas, place
		FROM unnest($4::bigint[], $5::bigint[], $7::bytea[], $8::bytea[], $9::bigint[], $10::bigint[], $11::bigint[]) WITH ORDINALITY
			AS w (intent, nonce, hash, raw, tip, cap, gas, place)
	), locked AS (
		SELECT t.id, t.kind, w.place, w.nonce FROM wanted w JOIN keeper.tx_intent t ON t.id = w.intent
		WHERE t.signer = $1 AND t.state = ANY ($14) ORDER BY t.id FOR UPDATE OF t
	), free AS MATERIALIZED (
		SELECT s, row_number() OVER (ORDER BY s) AS rank FROM generate_series(1, $13::integer) s
		WHERE EXISTS (SELECT FROM locked WHERE kind = 'liquidation')
			AND NOT EXISTS (SELECT FROM keeper.tx_intent f WHERE f.slot = s AND f.state IN `+inFlightStates+`)
	), placed AS MATERIALIZED (
		SELECT l.id, l.nonce, f.s AS slot
		FROM (SELECT id, nonce, kind, CASE WHEN kind = 'liquidation' THEN row_number() OVER (PARTITION BY kind ORDER BY place) END AS rank FROM locked) l
		LEFT JOIN free f ON f.rank = l.rank
		WHERE l.kind <> 'liquidation' OR f.s IS NOT NULL
	), sums AS (
		SELECT count(*) AS claims, count(*) FILTER (WHERE nonce >= $6) AS fresh, max(nonce) AS top,
			count(DISTINCT nonce) = cardinality($4::bigint[]) AND count(DISTINCT id) = cardinality($4::bigint[]) AND cardinality($4::bigint[]) > 0 AS whole
		FROM placed
	), advanced AS (
		UPDATE keeper.signer_lease l SET next_nonce = $6 + sums.fresh, updated_at = clock_timestamp()
		FROM sums
		WHERE l.signer = $1 AND l.owner = $2 AND l.fencing_token = $3 AND l.expires_at > clock_timestamp() AND l.next_nonce = $6
			AND sums.whole AND sums.top < $6 + sums.fresh
			AND NOT EXISTS (SELECT FROM placed JOIN keeper.signer_nonce_allocation n ON n.signer = $1 AND n.nonce = placed.nonce WHERE n.state <> 'RELEASED')
			AND (SELECT count(*) FROM keeper.tx_intent f WHERE f.signer = $1 AND f.state IN `+inFlightStates+`) + sums.claims <= $12::integer
		RETURNING sums.claims
	), allocated AS (
		INSERT INTO keeper.signer_nonce_allocation AS n (signer, nonce, state, intent, token)
		SELECT $1, placed.nonce, 'SIGNED', placed.id, $3 FROM advanced, placed
		ON CONFLICT (signer, nonce) DO UPDATE SET state = 'SIGNED', intent = excluded.intent, token = excluded.token, updated_at = clock_timestamp()
			WHERE n.state = 'RELEASED'
		RETURNING n.intent
	), signed AS (
		UPDATE keeper.tx_intent t SET state = 'SIGNED', nonce = placed.nonce, token = $3, slot = placed.slot, updated_at = clock_timestamp()
		FROM allocated JOIN placed ON placed.id = allocated.intent
		WHERE t.id = allocated.intent
		RETURNING t.id
	), stored AS (
		INSERT INTO keeper.tx_attempt (hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token)
		SELECT w.hash, signed.id, $1, w.nonce, 1, 'EXEC', w.raw, w.tip, w.cap, w.gas, $3 FROM signed JOIN wanted w ON w.intent = signed.id
		RETURNING intent
	)
	SELECT (SELECT count(*) FROM stored), set_config('synchronous_commit', 'on', true),
		1 / (coalesce((SELECT claims FROM advanced), 0) = (SELECT count(*) FROM stored))::integer`)
	// Why a claim found nothing to do: read afterwards, so it explains and decides nothing.
	whyNotClaimed = register("why not claimed", `SELECT
		EXISTS (SELECT FROM keeper.signer_lease WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp()),
		(SELECT count(*) FROM keeper.tx_intent WHERE id = ANY ($4) AND signer = $1 AND state = ANY ($5)),
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
func (s Intents) Claim(ctx context.Context, f lease.Fence, b txm.Batch) error {
	ctx, cancel := s.db.bounded(ctx)
	defer cancel()
	var stored, check int
	var setting string
	c := columnsOf(b.Claims)
	err := s.db.pool.QueryRow(ctx, claimIntents.sql(), f.Signer[:], f.Owner, f.Token, c.intents, c.nonces, b.Cursor, c.hashes, c.raws, c.tips, c.caps, c.gas,
		b.Limits.Signer, b.Limits.Liquidations, predecessors(txm.Signed)).Scan(&stored, &setting, &check)
	switch {
	case err != nil:
		return claimFailed(err)
	case stored == 0:
		return s.whyNot(ctx, f, b)
	}
	return nil
}

// claimColumns are the claims of a batch, turned.
type claimColumns struct {
	intents                 []int64
	nonces, tips, caps, gas []uint64
	hashes, raws            [][]byte
}

func columnsOf(claims []txm.Claim) (c claimColumns) {
	for _, claim := range claims {
		tx := claim.Tx
		c.intents, c.nonces = append(c.intents, claim.Intent), append(c.nonces, tx.Nonce)
		c.tips, c.caps, c.gas = append(c.tips, tx.Tip), append(c.caps, tx.Cap), append(c.gas, tx.Gas)
		c.hashes, c.raws = append(c.hashes, tx.Hash[:]), append(c.raws, tx.Raw)
	}
	return c
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

func (s Intents) whyNot(ctx context.Context, f lease.Fence, b txm.Batch) error {
	var held bool
	var queued, flying int
	var cursor uint64
	err := s.db.pool.QueryRow(ctx, whyNotClaimed.sql(), f.Signer[:], f.Owner, f.Token, columnsOf(b.Claims).intents, predecessors(txm.Signed)).
		Scan(&held, &queued, &cursor, &flying)
	refused := &txm.RefusedError{Op: "claim"}
	switch {
	case err != nil:
		return fmt.Errorf("asking why a claim was refused: %w", err)
	case !held:
		return &lease.LostError{Fence: f, Op: "claim"}
	case queued < len(b.Claims):
		refused.Why = txm.Moved
	case cursor != b.Cursor:
		refused.Why = txm.CursorMoved
	case flying+len(b.Claims) > b.Limits.Signer:
		refused.Why = txm.SignerFull
	case slices.ContainsFunc(b.Claims, func(c txm.Claim) bool { return c.Tx.Nonce < b.Cursor }):
		refused.Why = txm.CursorMoved // a gap that is none any more
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
