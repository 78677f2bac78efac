package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"perpkeeper/pkg/delayed"
)

// Delayed is the delayed.Store, and what adds rows to it and lets operators look at them.
type Delayed struct{ db *DB }

// Delayed returns the store of delayed jobs.
func (db *DB) Delayed() Delayed { return Delayed{db} }

const delayedColumns = `d.id, d.kind, d.key, d.payload, d.due_at, d.next_at, d.status, d.attempts,
	coalesce(d.last_error, ''), d.result, d.version,
	d.created_at, d.finished_at, d.deleted_at, clock_timestamp()`

// stillDue is the condition of the index delayed_job_due, word for word.
const stillDue = `d.status = 'pending' AND d.deleted_at IS NULL`

var (
	insertDelayed = Register("add delayed job",
		`INSERT INTO keeper.delayed_job (kind, key, payload, due_at, next_at) VALUES ($1, $2, $3, $4, $4)
		ON CONFLICT (kind, key) DO NOTHING`)
	selectNow = Register("now", `SELECT clock_timestamp()`)
	selectDue = Register("due delayed jobs", `SELECT d.next_at, d.id, d.version FROM keeper.delayed_job d
		WHERE `+stillDue+` AND d.next_at <= $1 AND (d.next_at, d.id) > ($2, $3) ORDER BY d.next_at, d.id LIMIT $4`)
	// Whoever finds the row locked leaves it to whoever holds it.
	lockDelayed = Register("lock delayed job", `SELECT `+delayedColumns+` FROM keeper.delayed_job d
		WHERE d.id = $1 AND d.version = $2 AND `+stillDue+` AND d.next_at <= clock_timestamp() FOR UPDATE SKIP LOCKED`)
	finishDelayed = Register("finish delayed job",
		`UPDATE keeper.delayed_job d SET status = 'done', result = $3, version = d.version + 1,
		finished_at = clock_timestamp() WHERE d.id = $1 AND d.version = $2 AND `+stillDue)
	failDelayed = Register("fail delayed job",
		`UPDATE keeper.delayed_job d SET status = $3, last_error = $4, attempts = d.attempts + 1,
		version = d.version + 1, next_at = clock_timestamp() + $5::bigint * interval '1 microsecond',
		finished_at = CASE WHEN $3 = 'parked' THEN clock_timestamp() END WHERE d.id = $1 AND d.version = $2
			AND `+stillDue)

	// Processes that are gone are forgotten after a day.
	upsertScan = Register("note scan",
		`WITH gone AS (DELETE FROM keeper.delayed_scan WHERE finished_at < clock_timestamp() - interval '1 day'
			AND scanner <> $1)
		INSERT INTO keeper.delayed_scan (scanner, began_at, finished_at, found, done, failed, parked, error)
		VALUES ($1, coalesce($2, clock_timestamp()), clock_timestamp(), $3, $4, $5, $6, nullif($7, ''))
		ON CONFLICT (scanner) DO UPDATE SET began_at = excluded.began_at, finished_at = excluded.finished_at, found =
			excluded.found,
			done = excluded.done, failed = excluded.failed, parked = excluded.parked, error = excluded.error`)
	selectNextDue = Register("next due delayed job",
		`SELECT extract(epoch FROM min(d.next_at) - clock_timestamp())::float8
		FROM keeper.delayed_job d WHERE `+stillDue)
	countParked = Register("count of parked jobs", `SELECT d.kind, count(*) FROM keeper.delayed_job d
		WHERE d.status = 'parked' AND d.deleted_at IS NULL GROUP BY d.kind`)
)

// Add stores jobs whose kind and key are not there yet, in one transaction, and returns how many were new.
func (s Delayed) Add(ctx context.Context, appointments ...delayed.Appointment) (added int, err error) {
	batch := &pgx.Batch{}
	for _, a := range appointments {
		payload, err := json.Marshal(a.Payload)
		if err != nil {
			return 0, fmt.Errorf("writing the payload of %s %s: %w", a.Kind, a.Key, err)
		}
		batch.Queue(insertDelayed.SQL(), a.Kind, a.Key, payload, a.DueAt).Exec(func(done pgconn.CommandTag) error {
			added += int(done.RowsAffected())
			return nil
		})
	}
	err = s.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	if err != nil {
		return 0, fmt.Errorf("adding %d delayed jobs: %w", len(appointments), err)
	}
	return added, nil
}

// Due implements delayed.Store.
func (s Delayed) Due(ctx context.Context, until time.Time, after delayed.Place, limit int) (page delayed.Page,
	err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	page.Until = until
	if until.IsZero() {
		if err := s.db.pool.QueryRow(ctx, selectNow.SQL()).Scan(&page.Until); err != nil {
			return page, fmt.Errorf("asking for the time: %w", err)
		}
	}
	page.Rows, err = Select(ctx, s.db.pool, pgx.RowToStructByPos[delayed.Place], selectDue.SQL(), page.Until,
		after.NextAt, after.ID, limit)
	return page, err
}

// Work implements delayed.Store. What do did is taken back to a savepoint when it failed, so that the row stays locked
// until its failure is written.
func (s Delayed) Work(ctx context.Context, row delayed.Place,
	do func(context.Context, delayed.Tx, delayed.Job) delayed.Ruling) (taken bool, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		jobs, err := Select(ctx, tx, scanDelayed, lockDelayed.SQL(), row.ID, row.Version)
		if err != nil {
			return fmt.Errorf("locking: %w", err)
		}
		if len(jobs) == 0 {
			return nil
		}
		taken = true
		ruling, err := tryDelayed(ctx, tx, jobs[0], do)
		if err != nil {
			return err
		}
		return writeRuling(ctx, tx, row, ruling)
	})
	return taken && err == nil, err
}

// tryDelayed does the work in a nested transaction.
func tryDelayed(ctx context.Context, tx pgx.Tx, j delayed.Job,
	do func(context.Context, delayed.Tx, delayed.Job) delayed.Ruling) (delayed.Ruling, error) {
	nested, err := tx.Begin(ctx)
	if err != nil {
		return delayed.Ruling{}, fmt.Errorf("setting a savepoint: %w", err)
	}
	ruling := do(ctx, delayedTx{nested}, j)
	if ruling.Err != nil {
		if err := nested.Rollback(ctx); err != nil {
			return ruling, fmt.Errorf("taking back an attempt that failed (%w): %w", ruling.Err, err)
		}
		return ruling, nil
	}
	if err := nested.Commit(ctx); err != nil {
		return ruling, fmt.Errorf("keeping what was done: %w", err)
	}
	return ruling, nil
}

// writeRuling writes what became of a job; the row is locked, so that it can only be there.
func writeRuling(ctx context.Context, tx pgx.Tx, row delayed.Place, r delayed.Ruling) error {
	statement, args := finishDelayed, []any{row.ID, row.Version, r.Result}
	if r.Err != nil {
		statement, args = failDelayed, []any{row.ID, row.Version, string(r.Status), Escape(r.Err.Error()),
			r.Again.Microseconds()}
	}
	changed, err := tx.Exec(ctx, statement.SQL(), args...)
	if err != nil {
		return fmt.Errorf("writing that it is %s: %w", r.Status, err)
	}
	if changed.RowsAffected() != 1 {
		return fmt.Errorf("writing that it is %s: the row changed under its lock", r.Status)
	}
	return nil
}

// scanDelayed reads delayedColumns.
var scanDelayed = Columns(func(j *delayed.Job) []any {
	return []any{&j.ID, &j.Kind, &j.Key, &j.Payload, &j.DueAt, &j.NextAt, &j.Status, &j.Attempts, &j.LastError,
		&j.Result, &j.Version, &j.CreatedAt, Moment(&j.FinishedAt), Moment(&j.DeletedAt), &j.ReadAt}
})

// Close implements delayed.Store.
func (s Delayed) Close(ctx context.Context, scanner string, sum delayed.Summary) (o delayed.Outlook, err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	var began *time.Time
	if !sum.BeganAt.IsZero() {
		began = &sum.BeganAt
	}
	text := ""
	if sum.Err != nil {
		text = Escape(sum.Err.Error())
	}
	if _, err := s.db.pool.Exec(ctx, upsertScan.SQL(), scanner, began, sum.Found, sum.Done, sum.Failed, sum.Parked,
		text); err != nil {
		return o, fmt.Errorf("noting it: %w", err)
	}
	var next *float64
	if err := s.db.pool.QueryRow(ctx, selectNextDue.SQL()).Scan(&next); err != nil {
		return o, fmt.Errorf("asking what comes next: %w", err)
	}
	o.Next = -1
	if next != nil {
		until := time.Duration(*next * float64(time.Second))
		o.Next, o.Late = max(until, 0), max(-until, 0)
	}
	o.Parked = map[string]int{}
	var kind string
	var n int
	if err := Each(ctx, s.db.pool, []any{&kind, &n}, func() error { o.Parked[kind] = n; return nil },
		countParked.SQL()); err != nil {
		return o, fmt.Errorf("counting parked jobs: %w", err)
	}
	return o, nil
}
