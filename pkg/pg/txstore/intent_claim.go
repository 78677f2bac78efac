package txstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	claimIntents = pg.Register("claim intents", claimText(claimParts{only: ` AND t.kind <> 'liquidation'`}))
	// Few batches have a liquidation, which takes one of the keeper's places, or a gap, whose row is there. For the
	// others it is a fifth less work to do without what finds them. Neither is overlooked: a liquidation that is not
	// said to be one does not come through the first text, and a number that has a row collides with it.
	claimSpecial = pg.Register("claim liquidations or gaps", claimText(claimParts{
		only: ` AND (t.kind <> 'liquidation' OR $16) AND w.nonce >= ` + archivedBelow,
		slot: `,
			slot = CASE WHEN t.kind = 'liquidation' THEN (ARRAY(
				SELECT s FROM generate_series(1, $15::integer + (SELECT count(*) FROM keeper.tx_intent f WHERE
					f.slot < ` + beyondSlots + ` AND f.state IN ` + inFlightStates + ` AND NOT ` + counts + `)) s
				WHERE NOT EXISTS (SELECT FROM keeper.tx_intent f WHERE f.slot = s
					AND f.state IN ` + inFlightStates + `) ORDER BY s
				LIMIT greatest(0, $15 - (SELECT count(*) FROM keeper.tx_intent f WHERE f.slot IS NOT NULL
					AND f.state IN ` + inFlightStates + ` AND ` + counts + `))
			))[array_position(ARRAY(
				SELECT i.id FROM unnest($4::bigint[]) WITH ORDINALITY AS c (intent, place) JOIN keeper.tx_intent i
					ON i.id = c.intent
				WHERE i.kind = 'liquidation' ORDER BY c.place
			), t.id)] END`,
		returning: `, t.kind, t.slot`,
		placed:    ` WHERE kind <> 'liquidation' OR slot IS NOT NULL`,
		reuse: `
		ON CONFLICT (signer, nonce) DO UPDATE SET state = 'SIGNED', intent = excluded.intent, token = excluded.token,
			updated_at = clock_timestamp()
			WHERE n.state = 'RELEASED'`,
	}))
	// Why a claim found nothing to do: read afterwards, so it explains and decides nothing.
	whyNotClaimed = pg.Register("why not claimed", `SELECT
		EXISTS (SELECT FROM keeper.signer_lease WHERE signer = $1 AND owner = $2 AND fencing_token = $3
			AND expires_at > clock_timestamp()),
		(SELECT count(*) FROM keeper.tx_intent WHERE id = ANY ($4) AND signer = $1 AND state = ANY ($5)
			AND (kind <> 'liquidation' OR $6)),
		(SELECT next_nonce FROM keeper.signer_lease WHERE signer = $1),
		`+pendingCount)
	countPending  = pg.Register("pending transactions", `SELECT `+pendingCount)
	selectClaimed = pg.Register("claimed intent", `SELECT a.hash FROM keeper.tx_intent i JOIN keeper.signed_tx a ON `+
		txsOf("i")+`
		WHERE i.id = $1 ORDER BY a.seq LIMIT 1`)
)

// counts says of a liquidation f in flight that it takes one of the keeper's places from the signer $1. Those of a
// signer that is out are stuck for as long as it is: they keep no other's, and there is one number more for each.
const counts = `(f.signer = $1 OR f.signer NOT IN ` + pg.OutSigners + `)`

// pendingCount is how many of a signer's places are taken.
const pendingCount = `(SELECT count(*) FROM keeper.signer_lease l JOIN keeper.tx_intent f ON f.signer = l.signer
	AND f.nonce >= l.mined_nonce AND f.state IN ` + inFlightStates + ` WHERE l.signer = $1)`

// claimParts are what the texts of the claim differ in.
type claimParts struct{ slot, only, returning, placed, reuse string }

// claimText is the fused statement, for one claim or several. Each step takes its rows from the one before. The lease
// row comes first, by the update that advances its cursor: this lock is the fence, and where it does not hold nothing
// else happens. Then intents, numbers and bytes are written. Were a step to find less than all after the cursor has
// moved, keeper.whole in the end takes everything back. The commit waits for the disk, whatever the server's
// default.
//
// What is in flight and not mined has numbers of its own from mined_nonce up to the cursor. Where these are few enough
// nothing is counted, and that is so unless some of them have ended: counting all that is in flight was more work than
// the rest of the claim.
//
// Rows that are written here refer to rows that are written here, so that nothing has to look them up again; see
// migration 00007.
func claimText(p claimParts) string {
	return `WITH advanced AS (
		UPDATE keeper.signer_lease l SET next_nonce = $6 + $13::bigint, updated_at = clock_timestamp()
		WHERE l.signer = $1 AND l.owner = $2 AND l.fencing_token = $3 AND l.expires_at > clock_timestamp()
			AND l.next_nonce = $6
			AND (greatest(l.next_nonce - l.mined_nonce, 0) <= $12::integer
				OR (SELECT count(*) FROM keeper.tx_intent f WHERE f.signer = $1 AND f.nonce >= l.mined_nonce
					AND f.state IN ` + inFlightStates + `) <= $12::integer)
		RETURNING 1
	), signed AS (
		UPDATE keeper.tx_intent t SET state = 'SIGNED', nonce = w.nonce, token = $3, updated_at =
			clock_timestamp()` + p.slot + `
		FROM advanced, unnest($4::bigint[], $5::bigint[], $7::bytea[], $8::bytea[], $9::bigint[], $10::bigint[],
			$11::bigint[])
			AS w (intent, nonce, hash, raw, tip, cap, gas)
		WHERE t.id = w.intent AND t.signer = $1 AND t.state = ANY ($14)` + p.only + `
		RETURNING w.intent, w.nonce, w.hash, w.raw, w.tip, w.cap, w.gas` + p.returning + `
	), allocated AS (
		INSERT INTO keeper.signer_nonce_allocation AS n (signer, nonce, state, intent, token)
		SELECT $1, nonce, 'SIGNED', intent, $3 FROM signed` + p.placed + p.reuse + `
		RETURNING 1
	), stored AS (
		INSERT INTO keeper.signed_tx (hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token)
		SELECT hash, intent, $1, nonce, 1, 'EXEC', raw, tip, cap, gas, $3 FROM signed WHERE (SELECT count(*)
			FROM allocated) = cardinality($4::bigint[])
		RETURNING 1
	)
	SELECT count(*), set_config('synchronous_commit', 'on', true),
		keeper.whole(EXISTS (SELECT FROM advanced)::integer * cardinality($4::bigint[]) = count(*)) FROM stored`
}

// The unique indexes that keep the keeper's limits.
const (
	indexKeyInFlight        = "tx_intent_key_in_flight"
	indexLiquidationAccount = "tx_intent_liquidation_account"
	indexLiquidationSlot    = "tx_intent_liquidation_slot"
	indexAdlSide            = "tx_intent_adl_side"
)

// Claim implements txm.Claims.
func (s Intents) Claim(ctx context.Context, f lease.Fence, b txm.Batch) error {
	fresh, err := b.Fresh()
	if err != nil {
		return fmt.Errorf("claiming: %w", err)
	}
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	c := columnsOf(b.Claims)
	text, args := claimIntents, []any{
		f.Signer[:], f.Owner, f.Token, c.intents, c.nonces, b.Cursor, c.hashes, c.raws, c.tips, c.caps, c.gas,
		b.Most(), fresh, predecessors(txm.Signed),
	}
	if fresh < len(b.Claims) || b.Has(job.Liquidation) {
		text, args = claimSpecial, append(args, b.Limits.Liquidations, b.Has(job.Liquidation))
	}
	var stored int
	for range slotTxs {
		if stored, err = s.claim(ctx, text, args); pg.ViolatedIndex(err) != indexLiquidationSlot {
			break
		}
	}
	switch {
	case pg.HasCode(err, codeNotWhole): // all of it was taken back
		return s.whyNot(ctx, f, b)
	case err != nil:
		return claimFailed(err)
	case stored == 0:
		return s.whyNot(ctx, f, b)
	}
	return nil
}

// slotTxs is how often a claim of liquidations is made again at once that met another signer's, which took the
// same of the keeper's places in the same moment: there may be others.
const slotTxs = 5

func (s Intents) claim(ctx context.Context, text *pg.Statement, args []any) (stored int, err error) {
	var whole bool
	var setting string
	err = s.db.Pool().QueryRow(ctx, text.SQL(), args...).Scan(&stored, &setting, &whole)
	return stored, err
}

// codeNotWhole is the SQLSTATE of keeper.whole: a statement came to less than the whole batch.
const codeNotWhole = "PK001"

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

// claimFailed returns the refusal that a violated unique index stands for, or the error as it is.
func claimFailed(err error) error {
	switch pg.ViolatedIndex(err) {
	case indexKeyInFlight:
		return &txm.RefusedError{Op: "claim", Why: txm.KeyBusy}
	case indexLiquidationAccount:
		return &txm.RefusedError{Op: "claim", Why: txm.AccountBusy}
	case indexAdlSide:
		return &txm.RefusedError{Op: "claim", Why: txm.SideBusy}
	case indexLiquidationSlot:
		return &txm.RefusedError{Op: "claim", Why: txm.KeeperFull}
	}
	return fmt.Errorf("claiming: %w", err)
}

func (s Intents) whyNot(ctx context.Context, f lease.Fence, b txm.Batch) error {
	var held bool
	var queued, pending int
	var cursor uint64
	err := s.db.Pool().QueryRow(ctx, whyNotClaimed.SQL(), f.Signer[:], f.Owner, f.Token, columnsOf(b.Claims).intents,
		predecessors(txm.Signed),
		b.Has(job.Liquidation)).Scan(&held, &queued, &cursor, &pending)
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
	case pending > b.Most():
		refused.Why = txm.SignerFull
	case slices.ContainsFunc(b.Claims, func(c txm.Claim) bool { return c.Tx.Nonce < b.Cursor }):
		refused.Why = txm.CursorMoved // a gap that is none any more
	default:
		refused.Why = txm.KeeperFull
	}
	return refused
}

// Pending implements txm.Claims.
func (s Intents) Pending(ctx context.Context, signer chain.Address) (pending int, err error) {
	return pg.One(ctx, s.db, fmt.Sprintf("counting the pending transactions of signer %s", signer), pgx.RowTo[int],
		countPending.SQL(), signer[:])
}

// Claimed implements txm.Claims.
func (s Intents) Claimed(ctx context.Context, intent int64) (chain.Hash, error) {
	hash, err := pg.One(ctx, s.db, fmt.Sprintf("looking up the transaction of intent %d", intent), pg.ScanHash,
		selectClaimed.SQL(), intent)
	if errors.Is(err, pgx.ErrNoRows) {
		return chain.Hash{}, nil
	}
	return hash, err
}
