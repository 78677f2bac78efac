package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/delayed"
)

var (
	listDelayed = Register("list delayed jobs", `SELECT `+delayedColumns+` FROM keeper.delayed_job d
		WHERE ($1 = '' OR d.status = $1) AND ($2 = '' OR d.kind = $2) AND d.deleted_at IS NULL
			ORDER BY d.next_at DESC, d.id DESC LIMIT $3`)
	selectDelayed = Register("one delayed job", `SELECT `+delayedColumns+` FROM keeper.delayed_job d WHERE d.id = $1`)
	retryDelayed  = Register("retry delayed job",
		`UPDATE keeper.delayed_job SET status = 'pending', attempts = 0, next_at = clock_timestamp(),
		finished_at = NULL, version = version + 1 WHERE id = $1 AND status <> 'done' AND deleted_at IS NULL`)
	cancelDelayed = Register("cancel delayed job",
		`UPDATE keeper.delayed_job SET deleted_at = clock_timestamp(), version = version + 1
		WHERE id = $1 AND status <> 'done' AND deleted_at IS NULL`)
	ringDelayed  = Register("ask for a scan", `SELECT clock_timestamp() FROM pg_notify('delayed_run', '')`)
	listenRing   = Register("listen for scans", `LISTEN delayed_run`)
	scansOfDelay = Register("scans",
		`SELECT scanner, began_at, finished_at, found, done, failed, parked, coalesce(error, '')
		FROM keeper.delayed_scan WHERE began_at >= $1 ORDER BY finished_at DESC`)
)

// List returns jobs that were not called off, the latest due first. An empty status or kind means any.
func (s Delayed) List(ctx context.Context, status delayed.Status, kind string, limit int) ([]delayed.Job, error) {
	return List(ctx, s.db, "listing delayed jobs", scanDelayed, listDelayed.SQL(), string(status), kind, limit)
}

// Job looks up one job; known is false when there is none.
func (s Delayed) Job(ctx context.Context, id int64) (j delayed.Job, known bool, err error) {
	j, err = One(ctx, s.db, fmt.Sprintf("looking up delayed job %d", id), scanDelayed, selectDelayed.SQL(), id)
	if errors.Is(err, pgx.ErrNoRows) {
		return j, false, nil
	}
	return j, err == nil, err
}

// Retry makes a job due at once, with all its attempts before it. It reports false when there is no such job, or it is
// done or called off.
func (s Delayed) Retry(ctx context.Context, id int64) (bool, error) {
	return s.operate(ctx, "taking up", retryDelayed, id)
}

// Cancel calls a job off. It reports false when there is no such job, or it is done or called off already.
func (s Delayed) Cancel(ctx context.Context, id int64) (bool, error) {
	return s.operate(ctx, "calling off", cancelDelayed, id)
}

func (s Delayed) operate(ctx context.Context, what string, statement *Statement, id int64) (bool, error) {
	rows, err := s.db.Run(ctx, fmt.Sprintf("%s delayed job %d", what, id), statement.SQL(), id)
	return rows == 1, err
}

// Ring asks every scanner for a scan now, and returns the database's time: scans that began after it have seen the
// ring.
func (s Delayed) Ring(ctx context.Context) (time.Time, error) {
	return One(ctx, s.db, "asking for a scan", pgx.RowTo[time.Time], ringDelayed.SQL())
}

// Scan is the last scan of one process.
type Scan struct {
	Scanner                     string
	BeganAt, FinishedAt         time.Time
	Found, Done, Failed, Parked int
	Error                       string
}

// Scans returns the last scan of every process that has begun one since the given time.
func (s Delayed) Scans(ctx context.Context, since time.Time) ([]Scan, error) {
	return List(ctx, s.db, "listing scans", pgx.RowToStructByPos[Scan], scansOfDelay.SQL(), since)
}

// Bell returns what rings when somebody asks for a scan. It is for one goroutine at a time.
func (s Delayed) Bell() *Listener { return s.db.ListenOn(listenRing) }
