package txstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	selectUnreported = pg.Register("unreported intents", `SELECT `+intentColumns+`, `+receiptColumns+`, i.ended_at
		FROM keeper.tx_intent i LEFT JOIN keeper.tx_receipt r ON r.intent = i.id
		WHERE i.signer = $1 AND i.ended_at IS NOT NULL AND i.reported_at IS NULL ORDER BY i.id LIMIT $2`)
	markReported = pg.Register("mark reported", `WITH `+fenceHeld+`, changed AS (
		UPDATE keeper.tx_intent t SET reported_at = clock_timestamp() FROM held
		WHERE t.signer = $1 AND t.id = ANY ($4) AND t.ended_at IS NOT NULL
		RETURNING t.id)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM changed)`)
)

// Unreported implements txm.Reports.
func (s Intents) Unreported(ctx context.Context, signer chain.Address, limit int) ([]txm.Ended, error) {
	return pg.List(ctx, s.db, fmt.Sprintf("listing what signer %s has ended", signer), scanEnded,
		selectUnreported.SQL(), signer[:], limit)
}

func scanEnded(row pgx.CollectableRow) (e txm.Ended, err error) {
	var i intentRow
	var r receiptRow
	if err := row.Scan(append(append(i.fields(), r.fields()...), &e.EndedAt)...); err != nil {
		return e, err
	}
	if e.Intent, err = i.intent(); err != nil {
		return e, err
	}
	e.Receipt, err = r.receipt()
	return e, err
}

// Reported implements txm.Reports.
func (s Intents) Reported(ctx context.Context, f lease.Fence, intents []int64) error {
	return fenced(ctx, s.db, "report", f, markReported, intents)
}

// toRetry are the attempts that failed for a cause that may pass, while that is news: what is still due later than that
// a planner says again anyway. The outcomes are those of txm.Transient and of the index over them.
const toRetry = `i.outcome IN ('reverted', 'foreign') AND NOT i.given_up
	AND i.ended_at > clock_timestamp() - interval '1 hour' AND i.kind <> '` + string(txm.Filler) + `'
	AND NOT EXISTS (SELECT FROM keeper.tx_intent n WHERE n.job_id = i.job_id AND n.attempt > i.attempt)`

var (
	selectFailed = pg.Register("attempts to be tried again",
		`SELECT i.id, i.retry_after_ms FROM keeper.tx_intent i WHERE i.signer = $1 AND `+toRetry)
	retryIntent = pg.Register("retry intent", `WITH `+fenceHeld+`, born AS (
		INSERT INTO keeper.tx_intent (job_id, attempt, tries, kind, key, account, class, ratio, due_since_ms, job,
			signer,
			state, said_ms)
		SELECT i.job_id, i.attempt + 1, i.tries + 1, i.kind, i.key, i.account, i.class, i.ratio, i.due_since_ms, i.job,
			i.signer, 'QUEUED', i.said_ms
		FROM keeper.tx_intent i, held WHERE i.id = $4 AND i.signer = $1 AND `+toRetry+`
		ON CONFLICT DO NOTHING
		RETURNING id)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM born)`)
)

// Failed implements txm.Again.
func (s Intents) Failed(ctx context.Context, signer chain.Address) ([]txm.Failed, error) {
	return pg.List(ctx, s.db, fmt.Sprintf("listing what failed of signer %s", signer),
		pgx.RowToStructByPos[txm.Failed], selectFailed.SQL(), signer[:])
}

// Retry implements txm.Again.
func (s Intents) Retry(ctx context.Context, f lease.Fence, intent int64) error {
	return fenced(ctx, s.db, "retry", f, retryIntent, intent)
}
