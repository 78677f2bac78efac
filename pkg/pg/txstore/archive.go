package txstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/retention"
	"perpkeeper/pkg/retry"
)

// Archive is the retention.Store: what has ended, in partitions of a week each (docs/adr/0035-archive.md).
//
// Guaranteed: a row is in exactly one of its table and the archive at any moment, whoever is killed. What is archived
// is final, reported and of no use to running jobs: no statement of the pipeline reads the archive. A job that ended
// gets no new attempt by a state from before that, and a number that was spent is never given again, also when nothing
// of them is left. Not guaranteed: that an attempt's number goes on when the archive has dropped the last one: a job
// that is found due again after that begins with attempt 1.
type Archive struct{ db *pg.DB }

// NewArchive returns the store of what has ended.
func NewArchive(db *pg.DB) Archive { return Archive{db} }

const (
	// archivedRows are the intents that are being moved.
	archivedRows = `keeper.tx_intent i WHERE i.id = ANY ($1)`
	// archivable are the intents whose rows nobody works with any more. The highest number that was given out stays: it
	// shows that the signer has worked. So does a stranger's transaction that keeps a signer paused.
	archivable = `i.ended_at IS NOT NULL AND i.reported_at IS NOT NULL
		AND (i.state <> 'FOREIGN' OR i.nonce < s.expected_below)
		AND (i.nonce IS NULL OR i.nonce < (SELECT max(n.nonce) FROM keeper.signer_nonce_allocation n
			WHERE n.signer = i.signer))`
)

var (
	lockArchive = pg.Register("lock archive", `SELECT pg_try_advisory_xact_lock(hashtext('perpkeeper archive'))`)
	// Partitions are made and dropped while others read the archive: who has to wait for them gives up soon, because
	// those that come later would wait as well.
	archivePatience = pg.Register("patience with readers of the archive", `SET LOCAL lock_timeout = '2s'`)

	// The age is compared with the transaction's time, which the index can be searched by.
	selectArchivable = pg.Register("attempts to archive", `SELECT i.id,
			date_trunc('week', i.ended_at AT TIME ZONE 'UTC')::date
		FROM keeper.tx_intent i JOIN keeper.signer s ON s.signer = i.signer
		WHERE i.ended_at < now() - $1::bigint * interval '1 microsecond' AND `+archivable+`
		ORDER BY i.ended_at LIMIT $2 FOR UPDATE OF i SKIP LOCKED`)
	openArchiveWeek = pg.Register("open week of the archive", `SELECT keeper.open_archive_week($1)`)

	//nolint:unqueryvet // TestArchiveHasTheColumns holds the columns equal, in their order
	archiveIntents = pg.Register("archive attempts", `INSERT INTO keeper.archived_intent SELECT i.* FROM `+archivedRows)
	//nolint:unqueryvet // TestArchiveHasTheColumns holds the columns equal, in their order
	archiveTxs = pg.Register("archive transactions", `INSERT INTO keeper.archived_signed_tx
		SELECT a.*, i.ended_at FROM keeper.signed_tx a, `+archivedRows+` AND `+txsOf("i"))
	//nolint:unqueryvet // TestArchiveHasTheColumns holds the columns equal, in their order
	archiveReceipts = pg.Register("archive receipts", `INSERT INTO keeper.archived_receipt
		SELECT r.*, i.ended_at FROM keeper.tx_receipt r, `+archivedRows+` AND r.intent = i.id`)
	//nolint:unqueryvet // TestArchiveHasTheColumns holds the columns equal, in their order
	archiveNumbers = pg.Register("archive numbers", `INSERT INTO keeper.archived_allocation
		SELECT n.*, i.ended_at FROM keeper.signer_nonce_allocation n, `+archivedRows+` AND `+numberOf)
	markArchived = pg.Register("mark what is archived", `UPDATE keeper.archive_mark m
		SET retry_after_ms = greatest(m.retry_after_ms, (SELECT max(i.retry_after_ms) FROM `+archivedRows+`))`)
	markNumbers = pg.Register("mark archived numbers", `INSERT INTO keeper.archived_nonce AS m (signer, below)
		SELECT i.signer, max(i.nonce) + 1 FROM `+archivedRows+` AND i.nonce IS NOT NULL GROUP BY i.signer
		ON CONFLICT (signer) DO UPDATE SET below = greatest(m.below, excluded.below)`)
	markJobs = pg.Register("mark archived jobs", `INSERT INTO keeper.archived_job AS j (job_id, attempt, ended_at)
		SELECT i.job_id, max(i.attempt), max(i.ended_at) FROM `+archivedRows+` AND i.outcome <> ALL ($2) GROUP BY i.job_id
		ON CONFLICT (job_id) DO UPDATE SET attempt = greatest(j.attempt, excluded.attempt),
			ended_at = greatest(j.ended_at, excluded.ended_at)`)
	countArchived = pg.Register("count what is archived",
		`UPDATE keeper.archive_week w SET intents = w.intents + n.intents,
			signed = w.signed + n.signed
		FROM (SELECT date_trunc('week', i.ended_at AT TIME ZONE 'UTC')::date AS week, count(*) AS intents,
				sum(made.signed) AS signed
			FROM keeper.tx_intent i CROSS JOIN LATERAL (SELECT count(*) AS signed
				FROM keeper.signed_tx a WHERE `+txsOf("i")+`) made
			WHERE i.id = ANY ($1) GROUP BY 1) n WHERE w.week = n.week`)
	removeReceipts = pg.Register("remove archived receipts",
		`DELETE FROM keeper.tx_receipt r WHERE r.intent = ANY ($1)`)
	removeTxs = pg.Register("remove archived transactions",
		`DELETE FROM keeper.signed_tx a USING `+archivedRows+` AND `+txsOf("i"))
	removeNumbers = pg.Register("remove archived numbers",
		`DELETE FROM keeper.signer_nonce_allocation n USING `+archivedRows+` AND `+numberOf)
	removeIntents = pg.Register("remove archived attempts", `DELETE FROM keeper.tx_intent i WHERE i.id = ANY ($1)`)
)

// numberOf joins the number n that an intent i has spent. One that was given to another intent since is that one's.
const numberOf = `n.signer = i.signer AND n.nonce = i.nonce AND n.intent = i.id AND n.state = 'CONSUMED'`

// errArchiving means that another process is at work on the archive.
var errArchiving = errors.New("another process works on the archive")

// Await implements retention.Store.
func (a Archive) Await(ctx context.Context) error {
	return a.db.AwaitSchema(ctx, retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second})
}

// Move implements retention.Store.
func (a Archive) Move(ctx context.Context, after time.Duration, most int) (moved int, err error) {
	ctx, cancel := a.db.Bounded(ctx)
	defer cancel()
	err = a.alone(ctx, func(tx pgx.Tx) error {
		intents, weeks, err := choose(ctx, tx, after, most)
		if err != nil || len(intents) == 0 {
			return err
		}
		for week := range weeks {
			if _, err := tx.Exec(ctx, openArchiveWeek.SQL(), week); err != nil {
				return fmt.Errorf("opening the week of %s: %w", week.Format(time.DateOnly), err)
			}
		}
		moved = len(intents)
		return move(ctx, tx, intents)
	})
	if err != nil {
		return 0, fmt.Errorf("moving what has ended to the archive: %w", err)
	}
	return moved, nil
}

// alone runs f in a transaction, unless another process is doing so. It is no error if one is.
func (a Archive) alone(ctx context.Context, f func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, a.db.Pool(), func(tx pgx.Tx) error {
		var free bool
		if err := tx.QueryRow(ctx, lockArchive.SQL()).Scan(&free); err != nil {
			return err
		}
		if !free {
			return errArchiving
		}
		if _, err := tx.Exec(ctx, archivePatience.SQL()); err != nil {
			return err
		}
		return f(tx)
	})
	if errors.Is(err, errArchiving) {
		return nil
	}
	return err
}

// choose locks the intents that ended first, and names the weeks they ended in. What somebody else has locked is left
// for the next time.
func choose(ctx context.Context, tx pgx.Tx, after time.Duration, most int) (intents []int64,
	weeks map[time.Time]bool, err error) {
	weeks = map[time.Time]bool{}
	var id int64
	var week time.Time
	err = pg.Each(ctx, tx, []any{&id, &week}, func() error {
		intents, weeks[week] = append(intents, id), true
		return nil
	}, selectArchivable.SQL(), after.Microseconds(), most)
	return intents, weeks, err
}

// move copies rows, marks what has to be known of them for ever, and removes them where they were.
func move(ctx context.Context, tx pgx.Tx, intents []int64) error {
	batch := &pgx.Batch{}
	for _, s := range []*pg.Statement{
		archiveIntents, archiveTxs, archiveReceipts, archiveNumbers, markArchived, markNumbers, countArchived,
	} {
		batch.Queue(s.SQL(), intents)
	}
	batch.Queue(markJobs.SQL(), intents, settledOutcomes())
	for _, s := range []*pg.Statement{removeReceipts, removeTxs, removeNumbers, removeIntents} {
		batch.Queue(s.SQL(), intents)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// settledOutcomes are those after which the need that the job's id names is gone: ids are functions of state.
func settledOutcomes() (outcomes []string) {
	for _, o := range []job.Outcome{job.Done, job.CancelledByVenue, job.FrozenByVenue, job.LostRace, job.SkippedDone} {
		outcomes = append(outcomes, string(o))
	}
	return outcomes
}

var _ retention.Store = Archive{}
