package txstore

import (
	"context"
	"encoding/binary"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	// The newest transaction is named by its hash, so that of two raises that began from the same one only one is
	// stored. What frees a nonce is never followed by what would use it.
	replaceTx = pg.Register("replace transaction", `WITH `+fenceHeld+`, flying AS (
		SELECT t.id, t.signer, t.nonce FROM held, keeper.tx_intent t WHERE t.id = $4 AND t.signer = $1
			AND t.state = ANY ($14) AND t.nonce = $12 FOR UPDATE OF t
	), newest AS (
		SELECT a.hash, a.seq, a.kind, a.tip, a.cap FROM flying JOIN keeper.signed_tx a ON `+txsOf("flying")+`
			ORDER BY a.seq DESC LIMIT 1
	), stored AS (
		INSERT INTO keeper.signed_tx (hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token)
		SELECT $6, flying.id, $1, flying.nonce, newest.seq + 1, $7, $8, $9, $10, $11, $3 FROM flying, newest
		WHERE newest.hash = $5 AND (newest.kind = $7 OR newest.kind = 'EXEC' AND $7 = 'CANCEL')
			AND $9::bigint >= ceil(newest.tip * $13::numeric) AND $10::bigint >= ceil(newest.cap * $13::numeric)
		RETURNING intent
	), leaving AS (
		UPDATE keeper.tx_intent t SET cancel_outcome = coalesce(t.cancel_outcome, $15), cancel_reason =
			coalesce(t.cancel_reason, $16),
			updated_at = clock_timestamp()
		FROM stored WHERE t.id = stored.intent AND $7 = 'CANCEL'
	)
	SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM stored), set_config('synchronous_commit', 'on', true)`)
	// A number below the cursor that nobody has gets an intent of its own, which is signed from the start.
	fillGap = pg.Register("fill gap", `WITH `+fenceHeld+`, gap AS (
		SELECT l.next_nonce FROM held, keeper.signer_lease l WHERE l.signer = $1 AND $4 < l.next_nonce
			AND $4 >= `+archivedBelow+`
			AND NOT EXISTS (SELECT FROM keeper.signer_nonce_allocation n WHERE n.signer = $1 AND n.nonce = $4
				AND n.state <> 'RELEASED')
	), filler AS (
		INSERT INTO keeper.tx_intent (job_id, attempt, kind, key, account, class, ratio, due_since_ms, job, signer,
			state,
			said_ms, nonce, token)
		SELECT $5, coalesce((SELECT max(attempt) FROM keeper.tx_intent
			WHERE job_id = $5), 0) + 1, $6, $7, $1, $8, 0, 0, $9, $1, 'SIGNED', 0, $4, $3 FROM gap
		RETURNING id
	), allocated AS (
		INSERT INTO keeper.signer_nonce_allocation AS n (signer, nonce, state, intent, token)
			SELECT $1, $4, 'SIGNED', id, $3 FROM filler
		ON CONFLICT (signer, nonce) DO UPDATE SET state = 'SIGNED', intent = excluded.intent, token = excluded.token,
			updated_at = clock_timestamp()
			WHERE n.state = 'RELEASED'
		RETURNING n.intent
	), stored AS (
		INSERT INTO keeper.signed_tx (hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token)
		SELECT $10, intent, $1, $4, 1, 'FILL', $11, $12, $13, $14, $3 FROM allocated
		RETURNING intent
	)
	SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM stored), set_config('synchronous_commit', 'on', true),
		keeper.whole((SELECT count(*) FROM filler) = (SELECT count(*) FROM stored))`)
)

// archivedBelow is the number below which the signer $1 has none to give: all are spent, and archived or older.
const archivedBelow = `coalesce((SELECT o.below FROM keeper.archived_nonce o WHERE o.signer = $1), 0)`

// Replace implements txm.PendingTxs.
func (s Intents) Replace(ctx context.Context, f lease.Fence, r txm.Replacement) error {
	var setting string
	tx, least := r.Tx, fmt.Sprintf("1.%02d", txm.MinGrowth)
	err := fencedInto(ctx, s.db, "replace", f, replaceTx, []any{
		r.Intent, r.After[:], tx.Hash[:], r.Kind, tx.Raw, tx.Tip, tx.Cap, tx.Gas, tx.Nonce, least, replaceable(),
		r.Cancel.Outcome, pg.Escape(r.Cancel.Reason),
	}, &setting)
	if pg.ViolatedIndex(err) == indexTxSequence {
		// another one that came after the same transaction was stored in the same moment
		return &txm.RefusedError{Op: "replace", Why: txm.Moved}
	}
	return err
}

// indexTxSequence is the unique index that lets one transaction follow another.
const indexTxSequence = "signed_tx_signer_nonce_seq_key"

// Fill implements txm.PendingTxs.
func (s Intents) Fill(ctx context.Context, f lease.Fence, tx txm.SignedTx) error {
	j := filler(f.Signer, tx.Nonce)
	text, err := encodeJob(j)
	if err != nil {
		return fmt.Errorf("writing job %s: %w", j.ID, err)
	}
	var setting string
	var whole bool
	return fencedInto(ctx, s.db, "fill", f, fillGap, []any{
		tx.Nonce, j.ID, j.Kind, j.Key[:], j.Class, text, tx.Hash[:], tx.Raw, tx.Tip, tx.Cap, tx.Gas,
	}, &setting, &whole)
}

// filler is the job of spending a number. Its key is nobody else's: signer and number.
func filler(signer chain.Address, n uint64) job.Job {
	var key chain.Hash
	copy(key[:], signer[:])
	binary.BigEndian.PutUint64(key[24:], n)
	return job.Job{
		ID: fmt.Sprintf("%s:%s:%d", txm.Filler, signer.Hex(), n), Kind: txm.Filler, Key: key, Account: signer,
		Class: job.ClassRequest, Signer: signer,
	}
}

// replaceable are the states in which another transaction may be made, as a parameter.
func replaceable() (states []string) {
	for _, s := range txm.States() {
		if s.Replaceable() {
			states = append(states, string(s))
		}
	}
	return states
}
