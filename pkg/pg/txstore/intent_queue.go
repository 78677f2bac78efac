package txstore

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	enqueue = pg.Register("enqueue intent", `WITH newest AS (
		SELECT id, attempt, tries, state, outcome, retry_after_ms FROM keeper.tx_intent WHERE job_id = $1 ORDER BY attempt DESC
			LIMIT 1
	), refreshed AS (
		UPDATE keeper.tx_intent t SET class = $5, ratio = $6, due_since_ms = $7, job = $8, signer = $9, said_ms = $10,
			updated_at = clock_timestamp()
		FROM newest WHERE t.id = newest.id AND t.state = 'QUEUED' AND t.said_ms <= $10
		RETURNING t.id
	), born AS (
		INSERT INTO keeper.tx_intent (job_id, attempt, tries, kind, key, account, class, ratio, due_since_ms, job,
			signer,
			state, said_ms)
		SELECT $1, coalesce(newest.attempt, (SELECT j.attempt FROM keeper.archived_job j WHERE j.job_id = $1), 0) + 1,
			CASE WHEN newest.outcome = ANY ($11) THEN newest.tries + 1 ELSE 0 END,
			$2, $3, $4, $5, $6, $7, $8, $9, 'QUEUED', $10
		FROM (SELECT 1 AS one) AS always LEFT JOIN newest ON true
		WHERE (newest.id IS NULL OR newest.retry_after_ms < $10) AND $10 > `+archivedUpTo+`
		ON CONFLICT DO NOTHING
		RETURNING id
	), told AS (
		SELECT count(pg_notify('intent_queued', '')) AS count FROM born
	)
	SELECT CASE
		WHEN (SELECT count FROM told) > 0 THEN 'queued'
		WHEN EXISTS (SELECT FROM refreshed) THEN 'refreshed'
		WHEN EXISTS (SELECT FROM newest WHERE retry_after_ms IS NOT NULL) OR $10 <= `+archivedUpTo+` THEN 'cooling'
		ELSE 'in_flight' END`)
	selectHeads = pg.Register("heads of the queue", `WITH room AS MATERIALIZED (
		SELECT $4::integer - count(*) AS places FROM keeper.tx_intent f WHERE f.slot IS NOT NULL
			AND f.state IN `+inFlightStates+` AND `+counts+`
	)
	SELECT `+intentColumns+`, room.places
		FROM keeper.tx_intent i JOIN keeper.signer s ON s.signer = i.signer CROSS JOIN room
		WHERE i.signer = $1 AND i.state = 'QUEUED' AND s.paused_reason IS NULL AND i.id <> ALL ($2)
			AND (i.kind <> 'liquidation' OR room.places > 0) AND (NOT $5 OR i.kind = ANY ($6))
			AND (i.kind = ANY ($6) OR room.places > 0 OR NOT EXISTS (SELECT FROM keeper.tx_intent l
				WHERE l.signer = $1 AND l.state = 'QUEUED' AND l.kind = 'liquidation'))
			AND NOT EXISTS (SELECT FROM keeper.tx_intent f WHERE f.key = i.key AND f.state IN `+inFlightStates+`)
			AND NOT EXISTS (SELECT FROM keeper.tx_intent f WHERE i.kind = 'liquidation' AND f.kind = 'liquidation'
				AND f.account = i.account AND f.slot IS NOT NULL
				AND f.state IN `+inFlightStates+`)
			AND NOT EXISTS (SELECT FROM keeper.tx_intent f WHERE i.kind IN ('adl', 'adlState')
				AND f.kind IN ('adl', 'adlState')
				AND f.job ->> 'market' = i.job ->> 'market' AND f.job ->> 'isLong' = i.job ->> 'isLong'
					AND f.state IN `+inFlightStates+`)
		ORDER BY i.class, i.ratio, i.due_since_ms, i.job_id LIMIT $3`)
	selectPaused = pg.Register("why paused", `SELECT coalesce(paused_reason, '') FROM keeper.signer WHERE signer = $1`)
	selectDepth  = pg.Register("depth of the queue",
		`SELECT count(*) FROM keeper.tx_intent WHERE signer = $1 AND state = 'QUEUED'`)
	skipIntent = pg.Register("skip intent", `WITH `+fenceHeld+`, changed AS (
		UPDATE keeper.tx_intent t SET state = 'SKIPPED', outcome = $5, reason = $6, ended_at = clock_timestamp(),
			updated_at = clock_timestamp(),
			retry_after_ms = $7, given_up = $8
		FROM held WHERE t.id = $4 AND t.signer = $1 AND t.state = ANY ($9)
		RETURNING t.id)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM changed)`)
)

// archivedUpTo is up to when a state may say of a job that it is due what an attempt has done that is archived, and
// perhaps dropped: see [Archive].
const archivedUpTo = `coalesce((SELECT m.retry_after_ms FROM keeper.archive_mark m), -1)`

// failures are the outcomes after which the next attempt is another try.
func failures() (outcomes []string) {
	for _, o := range []job.Outcome{job.Reverted, job.Refused, job.Expired, job.Foreign} {
		outcomes = append(outcomes, string(o))
	}
	return outcomes
}

// Enqueue implements txm.Queue.
func (s Intents) Enqueue(ctx context.Context, j job.Job) (txm.Admission, error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	text, err := encodeJob(j)
	if err != nil {
		return "", fmt.Errorf("writing job %s: %w", j.ID, err)
	}
	var a txm.Admission
	err = s.db.Pool().QueryRow(ctx, enqueue.SQL(), pg.Escape(j.ID), j.Kind, j.Key[:], j.Account[:], j.Class,
		j.Ratio.String(), j.DueSinceMs, text,
		j.Signer[:], j.Evidence.Block.TimeMs, failures()).Scan(&a)
	if pg.HasCode(err, codeForeignKeyViolation) {
		return "", fmt.Errorf("storing job %s for %s: %w", j.ID, j.Signer, txm.ErrUnknownSigner)
	}
	if err != nil {
		return "", fmt.Errorf("storing job %s: %w", j.ID, err)
	}
	return a, nil
}

const codeForeignKeyViolation = "23503"

// Heads implements txm.Queue.
func (s Intents) Heads(ctx context.Context, signer chain.Address, p txm.Pick) ([]txm.Intent, error) {
	if p.Except == nil {
		p.Except = []int64{} // nothing differs from all of NULL
	}
	most := p.Liquidations
	if most == 0 {
		most = math.MaxInt32
	}
	var places int
	heads, err := pg.List(ctx, s.db, fmt.Sprintf("reading the queue of signer %s", signer),
		func(row pgx.CollectableRow) (txm.Intent, error) {
			var r intentRow
			if err := row.Scan(append(r.fields(), &places)...); err != nil {
				return txm.Intent{}, err
			}
			return r.intent()
		}, selectHeads.SQL(), signer[:], p.Except, p.Limit, most, p.Urgent, urgent())
	return within(heads, places), err
}

// urgent are the kinds of jobs of the liquidations' lane, as a parameter.
func urgent() (kinds []string) {
	for _, k := range job.Kinds() {
		if k.Lane() == job.LiquidationLane {
			kinds = append(kinds, string(k))
		}
	}
	return kinds
}

// within leaves out the liquidations for which there is no place.
func within(heads []txm.Intent, places int) []txm.Intent {
	return slices.DeleteFunc(heads, func(i txm.Intent) bool {
		if i.Job.Kind != job.Liquidation {
			return false
		}
		places--
		return places < 0
	})
}

// Paused implements txm.Queue.
func (s Intents) Paused(ctx context.Context, signer chain.Address) (reason string, err error) {
	return pg.One(ctx, s.db, fmt.Sprintf("asking whether signer %s is paused", signer), pgx.RowTo[string],
		selectPaused.SQL(), signer[:])
}

// Depth implements txm.Queue.
func (s Intents) Depth(ctx context.Context, signer chain.Address) (depth int, err error) {
	return pg.One(ctx, s.db, fmt.Sprintf("counting the queue of signer %s", signer), pgx.RowTo[int],
		selectDepth.SQL(), signer[:])
}

// Skip implements txm.Queue.
func (s Intents) Skip(ctx context.Context, f lease.Fence, intent int64, e txm.Ending) error {
	return fenced(ctx, s.db, "skip", f, skipIntent, intent, e.Outcome, pg.Escape(e.Reason), e.RetryAfterMs, e.GivenUp,
		predecessors(txm.Skipped))
}

var listenIntents = pg.Register("listen for intents", `LISTEN intent_queued`)

// Listener returns a listener for intents that were queued, by whichever process. It connects at the first wait.
func (s Intents) Listener() *pg.Listener { return s.db.ListenOn(listenIntents) }
