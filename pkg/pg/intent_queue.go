package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

var (
	enqueue = register("enqueue intent", `WITH newest AS (
		SELECT id, arm, state, rearm_at FROM keeper.tx_intent WHERE job_id = $1 ORDER BY arm DESC LIMIT 1
	), refreshed AS (
		UPDATE keeper.tx_intent t SET class = $5, ratio = $6, birth_ms = $7, job = $8, signer = $9, said_at = $10, updated_at = clock_timestamp()
		FROM newest WHERE t.id = newest.id AND t.state = 'QUEUED' AND t.said_at < $10
		RETURNING t.id
	), born AS (
		INSERT INTO keeper.tx_intent (job_id, arm, kind, key, account, class, ratio, birth_ms, job, signer, state, said_at)
		SELECT $1, coalesce(newest.arm, 0) + 1, $2, $3, $4, $5, $6, $7, $8, $9, 'QUEUED', $10
		FROM (SELECT 1 AS one) AS always LEFT JOIN newest ON true
		WHERE newest.id IS NULL OR newest.rearm_at < $10
		ON CONFLICT DO NOTHING
		RETURNING id
	)
	SELECT CASE
		WHEN EXISTS (SELECT FROM born) THEN 'queued'
		WHEN EXISTS (SELECT FROM refreshed) THEN 'refreshed'
		WHEN EXISTS (SELECT FROM newest WHERE rearm_at IS NOT NULL) THEN 'cooling'
		ELSE 'in_flight' END`)
	selectHead = register("head of the queue", `SELECT `+intentColumns+`
		FROM keeper.tx_intent i JOIN keeper.signer s ON s.signer = i.signer
		WHERE i.signer = $1 AND i.state = 'QUEUED' AND s.paused_reason IS NULL AND i.id <> ALL ($2)
		ORDER BY i.class, i.ratio, i.birth_ms, i.job_id LIMIT 1`)
	selectDepth = register("depth of the queue", `SELECT count(*) FROM keeper.tx_intent WHERE signer = $1 AND state = 'QUEUED'`)
	skipIntent  = register("skip intent", `WITH `+fenceHeld+`, changed AS (
		UPDATE keeper.tx_intent t SET state = 'SKIPPED', outcome = $5, reason = $6, ended_at = clock_timestamp(), updated_at = clock_timestamp(),
			rearm_at = clock_timestamp() + $7::bigint * interval '1 microsecond'
		FROM held WHERE t.id = $4 AND t.signer = $1 AND t.state = ANY ($8)
		RETURNING t.id)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM changed)`)
)

// Enqueue implements txm.Queue.
func (s Intents) Enqueue(ctx context.Context, j job.Job, saidAt time.Time) (txm.Admission, error) {
	ctx, cancel := s.db.bounded(ctx)
	defer cancel()
	text, err := encodeJob(j)
	if err != nil {
		return "", fmt.Errorf("writing job %s: %w", j.ID, err)
	}
	var a txm.Admission
	err = s.db.pool.QueryRow(ctx, enqueue.sql(), escape(j.ID), j.Kind, j.Key[:], j.Account[:], j.Class, j.Ratio.String(), j.BirthMs, text,
		j.Signer[:], saidAt).Scan(&a)
	if hasCode(err, codeForeignKeyViolation) {
		return "", fmt.Errorf("storing job %s for %s: %w", j.ID, j.Signer, txm.ErrUnknownSigner)
	}
	if err != nil {
		return "", fmt.Errorf("storing job %s: %w", j.ID, err)
	}
	return a, nil
}

const codeForeignKeyViolation = "23503"

// Head implements txm.Queue.
func (s Intents) Head(ctx context.Context, signer chain.Address, except []int64) (*txm.Intent, error) {
	ctx, cancel := s.db.bounded(ctx)
	defer cancel()
	if except == nil {
		except = []int64{} // nothing differs from all of NULL
	}
	var row intentRow
	err := s.db.pool.QueryRow(ctx, selectHead.sql(), signer[:], except).Scan(row.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // an empty queue is no error; the documentation says so
	}
	if err != nil {
		return nil, fmt.Errorf("reading the queue of signer %s: %w", signer, err)
	}
	head, err := row.intent()
	return &head, err
}

// Depth implements txm.Queue.
func (s Intents) Depth(ctx context.Context, signer chain.Address) (depth int, err error) {
	ctx, cancel := s.db.bounded(ctx)
	defer cancel()
	if err := s.db.pool.QueryRow(ctx, selectDepth.sql(), signer[:]).Scan(&depth); err != nil {
		return 0, fmt.Errorf("counting the queue of signer %s: %w", signer, err)
	}
	return depth, nil
}

// Skip implements txm.Queue.
func (s Intents) Skip(ctx context.Context, f lease.Fence, intent int64, e txm.Ending) error {
	return s.db.fenced(ctx, "skip", f, skipIntent, intent, e.Outcome, escape(e.Reason), e.CoolDown.Microseconds(), predecessors(txm.Skipped))
}
