package pg

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/shadow"
	"perpkeeper/pkg/perp"
)

// Shadow is what a keeper without keys would have sent, and what the chain shows of the same jobs.
type Shadow struct{ db *DB }

// Shadow returns it.
func (db *DB) Shadow() Shadow { return Shadow{db} }

const trialColumns = `job_id, due_since_ms, kind, key, account, market, is_long, heard_ms, sent_block, sent_ms, gas,
	gas_price, reverts, outcome, reason`

var (
	// A process that starts again reads jobs of the past anew: what was observed and sent first stays.
	saveTrial = Register("save shadow trial", `INSERT INTO keeper.shadow_trial AS s (`+trialColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (job_id, due_since_ms) DO UPDATE SET
			sent_block = excluded.sent_block, sent_ms = excluded.sent_ms, gas = excluded.gas,
			gas_price = excluded.gas_price, reverts = greatest(s.reverts, excluded.reverts),
			outcome = excluded.outcome, reason = excluded.reason
		WHERE s.sent_block = 0`)
	selectTrials = Register("shadow trials", `SELECT `+trialColumns+` FROM keeper.shadow_trial
		WHERE heard_ms >= $1 ORDER BY heard_ms, job_id`)
	// What a transaction both made and ended was never anybody's to execute: orders of liquidations and deleveragings,
	// and requests within requests. Whatever changes a position ends the need to liquidate it.
	selectFates = Register("fates of jobs", `WITH ended AS (
			SELECT 'order' AS kind, key, market, is_long, stamp_block, stamp_time_ms, stamp_tx_hash,
				status = 'Updated'
					OR status = 'Cancelled' AND reason IN ('USER_INITIATED_CANCEL', 'AUTO_CANCEL') AS owner
			FROM {state}.perp_order
			WHERE deleted_at IS NULL AND (status = 'Updated'
				OR status IN ('Executed', 'Cancelled', 'Frozen') AND birth_tx_hash <> stamp_tx_hash)
			UNION ALL
			SELECT 'request ' || kind, key, market, false, stamp_block, stamp_time_ms, stamp_tx_hash,
				status = 'Cancelled' AND reason = 'USER_INITIATED_CANCEL'
			FROM {state}.request
			WHERE deleted_at IS NULL AND status IN ('Executed', 'Cancelled') AND birth_tx_hash <> stamp_tx_hash
			UNION ALL
			SELECT CASE WHEN s.order_type = 7 THEN 'liquidation' ELSE 'adl' END, s.position_key, s.market, s.is_long,
				s.stamp_block, s.stamp_time_ms, s.stamp_tx_hash, false
			FROM {state}.settlement s LEFT JOIN {state}.perp_order o ON o.key = s.key AND o.deleted_at IS NULL
			WHERE s.deleted_at IS NULL AND (s.order_type = 7 OR o.secondary_order_type = 1)
			UNION ALL
			SELECT 'liquidation', p.key, p.market, p.is_long, p.stamp_block, p.stamp_time_ms, p.stamp_tx_hash, true
			FROM {state}.position p WHERE p.deleted_at IS NULL AND NOT EXISTS (SELECT FROM {state}.settlement s
				WHERE s.position_key = p.key AND s.order_type = 7 AND s.stamp_tx_hash = p.stamp_tx_hash)
		)
		SELECT e.kind, e.key, e.market, e.is_long, e.stamp_block::bigint, e.stamp_time_ms::bigint, t.tx_from, e.owner,
			coalesce((SELECT sum(f.amount) FROM {state}.keeper_fee f WHERE f.stamp_block = e.stamp_block
				AND f.stamp_tx_hash = e.stamp_tx_hash AND f.deleted_at IS NULL), 0)::text,
			coalesce(t.tx_gas_used * t.tx_gas_price, 0)::text
		FROM ended e LEFT JOIN {state}.transaction t ON t.key = e.stamp_tx_hash AND t.deleted_at IS NULL
		WHERE e.stamp_time_ms >= $1::numeric ORDER BY e.stamp_block`)
)

// Save keeps trials as they stand.
func (s Shadow) Save(ctx context.Context, trials []shadow.Trial) error {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	batch := &pgx.Batch{}
	for _, t := range trials {
		batch.Queue(saveTrial.SQL(), Escape(t.JobID), t.DueSinceMs, t.Kind, t.Key[:], t.Account[:], t.Market[:],
			t.IsLong,
			t.ObservedMs, t.SentBlock, t.SentMs, t.Gas, t.GasPrice, t.Reverts, t.Outcome, Escape(t.Reason))
	}
	if err := s.db.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("keeping what would have been sent: %w", err)
	}
	return nil
}

// Evidence returns the trials that were observed since a time (Unix ms of the chain's clock), what the chain shows
// since then of orders, requests and positions, and the block up to which it does, in one snapshot.
func (s Shadow) Evidence(ctx context.Context, sinceMs uint64) (trials []shadow.Trial, fates []shadow.Fate,
	upTo chain.BlockRef, err error) {
	err = s.db.Read(ctx, "reading what became of a shadow's jobs", func(ctx context.Context, tx pgx.Tx) error {
		progress, err := ActiveProgress(ctx, tx)
		if err != nil {
			return err
		}
		if upTo = progress.Watermark; upTo.Hash.IsZero() {
			return fmt.Errorf("the partitions of the state have no block in common")
		}
		if trials, err = Select(ctx, tx, scanTrial, selectTrials.SQL(), int64(sinceMs)); err != nil {
			return err
		}
		fates, err = Select(ctx, tx, scanFate, selectFates.In(progress.Generation), int64(sinceMs))
		return err
	})
	return trials, fates, upTo, err
}

var scanTrial = Columns(func(t *shadow.Trial) []any {
	return []any{Text(&t.JobID), &t.DueSinceMs, &t.Kind, Fixed(t.Key[:]), Fixed(t.Account[:]), Fixed(t.Market[:]),
		&t.IsLong, &t.ObservedMs, &t.SentBlock, &t.SentMs, &t.Gas, &t.GasPrice, &t.Reverts, &t.Outcome, Text(&t.Reason)}
})

func scanFate(row pgx.CollectableRow) (f shadow.Fate, err error) {
	err = row.Scan(&f.Kind, Fixed(f.Key[:]), Fixed(f.Market[:]), &f.IsLong, &f.Block, &f.TimeMs, Fixed(f.By[:]),
		&f.ByOwner, Amount(&f.Fee), Amount(&f.Gas))
	if request, is := strings.CutPrefix(string(f.Kind), "request "); is { // as selectFates writes it
		f.Kind = job.Kind(perp.RequestKind(request))
	}
	return f, err
}
