package keeperctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

// databaseCommand is a command of the keeper's database. Its arguments are those after its name.
type databaseCommand func(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error

// onDatabase wraps a command of the keeper's database.
func onDatabase(do databaseCommand) runner {
	return func(ctx context.Context, s *session, args []string) error {
		db, err := s.database(ctx)
		if err != nil {
			return err
		}
		return do(ctx, db, s.Own, args, s.out)
	}
}

// delayedJobs lets operators see and steer delayed jobs (DLY-8).
func delayedJobs(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error {
	d := delayedCommands{db.Delayed(), own, out}
	return verbs{"run": d.run, "list": d.list, "show": d.one(nil), "retry": d.one(action.RetryDelayed),
		"cancel": d.one(action.CancelDelayed)}.do(ctx, "delayed", args)
}

// delayedCommands is one invocation of the command.
type delayedCommands struct {
	jobs pg.Delayed
	own  Settings
	out  printer
}

// run asks the planners for a scan and waits for the first to have finished one.
func (d delayedCommands) run(ctx context.Context, _ []string) error {
	at, err := d.jobs.Ring(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.own.Patience,
		fmt.Errorf("no planner has scanned within %s (is one running?)", d.own.Patience))
	defer cancel()
	for {
		scans, err := d.jobs.Scans(ctx, at)
		if err == nil && len(scans) > 0 {
			return printScans(scans, d.out)
		}
		if !retry.Sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

func printScans(scans []pg.Scan, out printer) error {
	rows, failed := newTable("scanner", "found", "done", "failed", "parked"), error(nil)
	for _, s := range scans {
		rows.add(s.Scanner, s.Found, s.Done, s.Failed, s.Parked)
		if s.Error != "" {
			failed = errors.Join(failed, fmt.Errorf("the scan of %s failed: %s", s.Scanner, s.Error))
		}
	}
	return errors.Join(out.table(rows), failed)
}

func (d delayedCommands) list(ctx context.Context, filter []string) error {
	var status delayed.Status
	kind := ""
	for _, f := range filter {
		switch known := delayed.Status(f); known {
		case delayed.Pending, delayed.Done, delayed.Parked:
			status = known
		default:
			kind = f
		}
	}
	jobs, err := d.jobs.List(ctx, status, kind, d.own.Limit)
	if err != nil {
		return err
	}
	rows := newTable("id", "kind", "key", "status", "due", "next try", "failed", "last error")
	rows.empty = strings.Join(append([]string{"no delayed jobs"}, filter...), " ")
	for _, j := range jobs {
		next := "-"
		if j.Status == delayed.Pending {
			next = text.Moment(j.NextAt)
		}
		rows.add(j.ID, j.Kind, j.Key, j.Status, text.Moment(j.DueAt), next, j.Attempts, text.FirstLine(j.LastError))
	}
	return d.out.table(rows)
}

// one is a verb that shows a delayed job, once something is done with it.
func (d delayedCommands) one(do func(context.Context, pg.Delayed, int64) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no id of a job (keeperctl delayed list shows them)", args[0])
		}
		if do != nil {
			if err := do(ctx, d.jobs, id); err != nil {
				return err
			}
		}
		j, err := action.Delayed(ctx, d.jobs, id)
		if err != nil {
			return err
		}
		return d.out.object(shown(j))
	}
}

// shown is a job as show prints it: without what is not there.
func shown(j delayed.Job) any {
	return struct {
		ID        int64           `json:"id"`
		Kind      string          `json:"kind"`
		Key       string          `json:"key"`
		Payload   json.RawMessage `json:"payload"`
		Status    delayed.Status  `json:"status"`
		DueAt     time.Time       `json:"dueAt"`
		NextAt    time.Time       `json:"nextAt"`
		Attempts  int             `json:"failedAttempts"`
		LastError string          `json:"lastError,omitempty"`
		Result    json.RawMessage `json:"result,omitempty"`
		Created   time.Time       `json:"createdAt"`
		Finished  time.Time       `json:"finishedAt,omitzero"`
		CalledOff time.Time       `json:"calledOffAt,omitzero"`
	}{
		j.ID, j.Kind, j.Key, j.Payload, j.Status, j.DueAt, j.NextAt, j.Attempts, j.LastError, j.Result, j.CreatedAt,
		j.FinishedAt, j.DeletedAt,
	}
}
