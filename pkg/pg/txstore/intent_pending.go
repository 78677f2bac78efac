package txstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	selectPendingTxs = pg.Register("transactions in flight", `SELECT `+intentColumns+`, `+receiptColumns+`,
		a.hash, a.kind, a.raw, a.tip, a.cap, a.gas, a.seq, a.sends, coalesce(a.last_class, ''),
		(extract(epoch FROM clock_timestamp() - a.created_at) * 1000000)::bigint
		FROM keeper.tx_intent i JOIN keeper.signed_tx a ON `+txsOf("i")+` LEFT JOIN keeper.tx_receipt r
			ON r.intent = i.id
		WHERE i.signer = $1 AND i.state IN `+inFlightStates+` ORDER BY i.nonce, a.seq`)
	noteBroadcast = pg.Register("note broadcast", `WITH `+fenceHeld+`, noted AS (
		UPDATE keeper.signed_tx a SET sends = a.sends + 1, last_class = $5,
			first_sent_at = coalesce(a.first_sent_at, clock_timestamp()), last_sent_at = clock_timestamp()
		FROM held WHERE a.hash = $4 AND a.signer = $1
		RETURNING a.intent
	), sent AS (
		UPDATE keeper.tx_intent t SET state = 'SENT', updated_at = clock_timestamp() FROM noted
			WHERE t.id = noted.intent AND t.state = 'SIGNED' AND $6)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM noted)`)
	recordReceipt = pg.Register("record receipt", `WITH `+fenceHeld+`, mined AS (
		UPDATE keeper.tx_intent t SET state = 'MINED', updated_at = clock_timestamp()
		FROM held, keeper.signed_tx a, unnest($4::bytea[], $5::bigint[], $6::bytea[], $7::boolean[], $8::bigint[],
			$9::bigint[], $10::text[], $11::text[], $13::text[])
			AS w (hash, block, block_hash, ok, gas_used, gas_price, outcome, reason, settlement)
		WHERE a.hash = w.hash AND a.signer = $1 AND t.id = a.intent AND t.state = ANY ($12)
		RETURNING t.id, t.kind AS of_kind, w.*
	), seen AS (
		INSERT INTO keeper.tx_receipt AS r (intent, signer, kind, tx_hash, block, block_hash, ok, gas_used, gas_price,
			outcome, reason, settlement)
		SELECT id, $1, of_kind, hash, block, block_hash, ok, gas_used, gas_price, outcome, reason, settlement::jsonb
			FROM mined
		ON CONFLICT (intent) DO UPDATE SET tx_hash = excluded.tx_hash, block = excluded.block, block_hash =
			excluded.block_hash, ok = excluded.ok,
			gas_used = excluded.gas_used, gas_price = excluded.gas_price, outcome = excluded.outcome, reason =
				excluded.reason, seen_at = excluded.seen_at,
			settlement = excluded.settlement)
		SELECT (SELECT count(*) FROM held), `+allOf("mined"))
	unmineReceipt = pg.Register("unmine receipt", `WITH `+fenceHeld+`, gone AS (
		DELETE FROM keeper.tx_receipt r USING held, keeper.signed_tx a
		WHERE a.hash = $4 AND r.intent = a.intent AND r.tx_hash = a.hash AND r.block_hash = $5 AND NOT r.final
			AND EXISTS (SELECT FROM keeper.tx_intent t WHERE t.id = r.intent AND t.signer = $1 AND t.state = 'MINED')
		RETURNING r.intent
	), back AS (
		UPDATE keeper.tx_intent t SET state = 'SENT', updated_at = clock_timestamp() FROM gone
			WHERE t.id = gone.intent AND t.state = 'MINED' RETURNING t.id)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM back)`)
	finishIntent = pg.Register("finish intent", `WITH `+fenceHeld+`, ended AS (
		UPDATE keeper.tx_intent t SET state = w.state, outcome = r.outcome, reason = r.reason, ended_at =
			clock_timestamp(), updated_at = clock_timestamp(), retry_after_ms = w.retry_after_ms, given_up = w.given_up,
			reported_at = CASE WHEN t.kind = '`+string(txm.Filler)+`' THEN clock_timestamp() END
		FROM held, keeper.signed_tx a, keeper.tx_receipt r,
			unnest($4::bytea[], $5::bytea[], $6::text[], $7::bigint[], $8::boolean[])
			AS w (hash, block_hash, state, retry_after_ms, given_up)
		WHERE a.hash = w.hash AND r.intent = a.intent AND r.tx_hash = a.hash AND r.block_hash = w.block_hash
			AND t.id = r.intent AND t.signer = $1 AND t.state = ANY ($9)
		RETURNING t.id, t.nonce
	), final AS (
		UPDATE keeper.tx_receipt r SET final = true FROM ended WHERE r.intent = ended.id
	), consumed AS (
		UPDATE keeper.signer_nonce_allocation n SET state = 'CONSUMED', updated_at = clock_timestamp()
		FROM ended WHERE n.signer = $1 AND n.nonce = ended.nonce AND n.state = 'SIGNED')
		SELECT (SELECT count(*) FROM held), `+allOf("ended"))
	loseNonce = pg.Register("lose nonce", `WITH `+fenceHeld+`, ended AS (
		UPDATE keeper.tx_intent t SET state = 'FOREIGN', outcome = $5, reason = $6, ended_at = clock_timestamp(),
			updated_at = clock_timestamp(),
			retry_after_ms = $7, given_up = $8, reported_at = CASE WHEN t.kind = '`+string(txm.Filler)+`' THEN clock_timestamp() END
		FROM held WHERE t.id = $4 AND t.signer = $1 AND t.state = ANY ($9)
		RETURNING t.id, t.nonce
	), consumed AS (
		UPDATE keeper.signer_nonce_allocation n SET state = 'CONSUMED', updated_at = clock_timestamp()
		FROM ended WHERE n.signer = $1 AND n.nonce = ended.nonce AND n.state = 'SIGNED' AND $5 <> 'withdrawn'
	), paused AS (
		UPDATE keeper.signer s SET paused_reason = coalesce(s.paused_reason, $6), updated_at = clock_timestamp()
		FROM ended WHERE s.signer = $1 AND ended.nonce >= s.expected_below
	), told AS (
		INSERT INTO keeper.signer_event (signer, token, what, detail) SELECT $1, $3, 'foreign', $6 FROM ended)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM ended)`)
	pauseSigner = pg.Register("pause signer", `WITH `+fenceHeld+`, paused AS (
		UPDATE keeper.signer s SET paused_reason = coalesce(s.paused_reason, $4), updated_at = clock_timestamp()
		FROM held, (SELECT paused_reason IS NULL AS news FROM keeper.signer WHERE signer = $1) before
			WHERE s.signer = $1 RETURNING s.signer, before.news
	), told AS (
		INSERT INTO keeper.signer_event (signer, token, what, detail) SELECT signer, $3, 'paused', $4 FROM paused
			WHERE news)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM paused)`)
	unableSigner = pg.Register("unable signer", `WITH `+fenceHeld+`, told AS (
		UPDATE keeper.signer s SET unable = nullif($4, ''), unable_until = CASE WHEN $4 <> '' THEN clock_timestamp()
			+ $5::bigint * interval '1 microsecond' END, updated_at = clock_timestamp()
		FROM held WHERE s.signer = $1 RETURNING s.signer)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM told)`)
)

// InFlight implements txm.PendingTxs.
func (s Intents) InFlight(ctx context.Context, signer chain.Address) ([]txm.PendingTx, error) {
	rows, err := pg.List(ctx, s.db, fmt.Sprintf("listing the pending transactions of signer %s", signer), scanPending,
		selectPendingTxs.SQL(), signer[:])
	if err != nil {
		return nil, err
	}
	var inFlight []txm.PendingTx
	for _, f := range rows {
		if n := len(inFlight); n > 0 && inFlight[n-1].Intent.ID == f.Intent.ID {
			inFlight[n-1].Txs = append(inFlight[n-1].Txs, f.Txs...)
		} else {
			inFlight = append(inFlight, f)
		}
	}
	return inFlight, nil
}

// scanPending reads a row: one transaction, with its intent and receipt beside it.
func scanPending(row pgx.CollectableRow) (f txm.PendingTx, err error) {
	var i intentRow
	var r receiptRow
	var a txm.Tx
	if err := row.Scan(append(append(i.fields(), r.fields()...), pg.Fixed(a.Hash[:]), &a.Kind, &a.Raw, &a.Tip, &a.Cap,
		&a.Gas, &a.Seq, &a.Sends, &a.LastClass, pg.Microseconds(&f.Age))...); err != nil {
		return f, err
	}
	if f.Intent, err = i.intent(); err != nil {
		return f, err
	}
	a.Nonce = f.Intent.Nonce
	f.Txs = []txm.Tx{a}
	f.Mined, err = r.receipt()
	return f, err
}

// Noted implements txm.PendingTxs.
func (s Intents) Noted(ctx context.Context, f lease.Fence, hash chain.Hash, class string, accepted bool) error {
	return fenced(ctx, s.db, "noted", f, noteBroadcast, hash[:], class, accepted)
}

// allOf counts the rows that a statement has changed for the hashes of $4, and fails where these are fewer, which takes
// all of it back; see refusedBatch. Where the fence does not hold there are none, which is no failure.
func allOf(rows string) string {
	return fmt.Sprintf(
		`(SELECT CASE WHEN keeper.whole(NOT EXISTS (SELECT FROM held) OR count(*) = cardinality($4::bytea[]))
			THEN count(*) END FROM %s)`, rows)
}

// refusedBatch reads the error of a statement with allOf.
func refusedBatch(op string, err error) error {
	if pg.HasCode(err, codeNotWhole) {
		return &txm.RefusedError{Op: op, Why: txm.Moved}
	}
	return err
}

// Record implements txm.PendingTxs.
func (s Intents) Record(ctx context.Context, f lease.Fence, receipts ...txm.Receipt) error {
	c, err := receiptColumnsOf(receipts)
	if err != nil {
		return err
	}
	from := append(predecessors(txm.Mined), string(txm.Mined))
	return refusedBatch("record", fenced(ctx, s.db, "record", f, recordReceipt, c.hashes, c.blocks, c.blockHashes,
		c.oks,
		c.gasUsed, c.gasPrices, c.outcomes, c.reasons, from, c.settlements))
}

// Unmine implements txm.PendingTxs.
func (s Intents) Unmine(ctx context.Context, f lease.Fence, r txm.Receipt) error {
	return fenced(ctx, s.db, "unmine", f, unmineReceipt, r.TxHash[:], r.Block.Hash[:])
}

// Finish implements txm.PendingTxs. Every state that a receipt leads to has the same before it.
func (s Intents) Finish(ctx context.Context, f lease.Fence, finals ...txm.FinalReceipt) error {
	c := finalColumnsOf(finals)
	return refusedBatch("finish", fenced(ctx, s.db, "finish", f, finishIntent, c.hashes, c.blockHashes, c.states,
		c.retryAfter,
		c.givenUp, predecessors(txm.FinalOK)))
}

// NonceLost implements txm.PendingTxs.
func (s Intents) NonceLost(ctx context.Context, f lease.Fence, intent int64, e txm.Ending) error {
	return fenced(ctx, s.db, "nonce_lost", f, loseNonce, intent, e.Outcome, pg.Escape(e.Reason), e.RetryAfterMs,
		e.GivenUp, predecessors(txm.Foreign))
}

// Pause implements txm.PendingTxs. The reason may be a node's answer, byte for byte.
func (s Intents) Pause(ctx context.Context, f lease.Fence, reason string) error {
	return fenced(ctx, s.db, "pause", f, pauseSigner, pg.Escape(reason))
}

// Unable implements txm.PendingTxs. The reason may be a remote signer's answer, byte for byte.
func (s Intents) Unable(ctx context.Context, f lease.Fence, reason string, believed time.Duration) error {
	return fenced(ctx, s.db, "unable", f, unableSigner, pg.Escape(reason), believed.Microseconds())
}

// minedBelow moves the number below which a signer's transactions are mined. The liquidations below it give their slots
// back; those from it on that have none, as a reorg has taken their block, get one beyond what a claim may take, where
// none is left to collide with: the keeper's limit counts it all the same. Two intents in flight are never so many
// numbers apart that they would get the same one.
var minedBelow = pg.Register("mined below", `WITH moved AS (
		UPDATE keeper.signer_lease l SET mined_nonce = $4, updated_at = clock_timestamp()
		WHERE l.signer = $1 AND l.owner = $2 AND l.fencing_token = $3 AND l.expires_at > clock_timestamp()
		RETURNING l.signer
	), freed AS (
		UPDATE keeper.tx_intent t SET slot = NULL, updated_at = clock_timestamp() FROM moved
		WHERE t.signer = moved.signer AND t.state IN `+inFlightStates+` AND t.nonce < $4 AND t.slot IS NOT NULL
	), counted AS (
		UPDATE keeper.tx_intent t SET slot = `+beyondSlots+` + t.id % `+beyondSlots+`, updated_at = clock_timestamp()
		FROM moved
		WHERE t.signer = moved.signer AND t.state IN `+inFlightStates+` AND t.nonce >= $4 AND t.slot IS NULL
			AND t.kind = 'liquidation'
	)
	SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM moved)`)

// beyondSlots is above any number of liquidations that can be configured, and half of what a slot can be.
const beyondSlots = `16000`

// MinedBelow implements txm.PendingTxs.
func (s Intents) MinedBelow(ctx context.Context, f lease.Fence, number uint64) error {
	return fenced(ctx, s.db, "mined_below", f, minedBelow, number)
}
