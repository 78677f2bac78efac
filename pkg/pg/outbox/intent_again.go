package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txm"
)

// toRetry are the arms that failed for a cause that may pass, while that is news: what is still due later than that a
// planner says again anyway. The outcomes are those of txm.Transient and of the index over them.
const toRetry = `i.outcome IN ('reverted', 'foreign') AND NOT i.given_up
	AND i.ended_at > clock_timestamp() - interval '1 hour' AND i.kind <> '` + string(txm.Filler) + `'
	AND NOT EXISTS (SELECT FROM keeper.tx_intent n WHERE n.job_id = i.job_id AND n.arm > i.arm)`

var (
	selectFailed = pg.Register("arms to be tried again",
		`SELECT i.id, i.rearm_ms FROM keeper.tx_intent i WHERE i.signer = $1 AND `+toRetry)
	retryIntent = pg.Register("retry intent", `WITH `+fenceHeld+`, born AS (
		INSERT INTO keeper.tx_intent (job_id, arm, tries, kind, key, account, class, ratio, birth_ms, job, signer,
			state, said_ms)
		SELECT i.job_id, i.arm + 1, i.tries + 1, i.kind, i.key, i.account, i.class, i.ratio, i.birth_ms, i.job,
			i.signer, 'QUEUED', i.said_ms
		FROM keeper.tx_intent i, held WHERE i.id = $4 AND i.signer = $1 AND `+toRetry+`
		ON CONFLICT DO NOTHING
		RETURNING id)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM born)`)
)

// Failed implements txm.Again.
func (s Intents) Failed(ctx context.Context, signer chain.Address) ([]txm.Failed, error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	rows, err := s.db.Pool().Query(ctx, selectFailed.SQL(), signer[:])
	if err != nil {
		return nil, fmt.Errorf("listing what failed of signer %s: %w", signer, err)
	}
	failed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f txm.Failed, err error) {
		err = row.Scan(&f.Intent, &f.AtMs)
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing what failed of signer %s: %w", signer, err)
	}
	return failed, nil
}

// Retry implements txm.Again.
func (s Intents) Retry(ctx context.Context, f lease.Fence, intent int64) error {
	return fenced(ctx, s.db, "retry", f, retryIntent, intent)
}
