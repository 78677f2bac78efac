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

const delayedUsage = "delayed run | list [pending|done|parked] [KIND] | show ID | retry ID | cancel ID"

// delayedJobs lets operators see and steer delayed jobs (DLY-8).
func delayedJobs(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error {
	verb, rest := verbOf(args)
	switch {
	case verb == "run" && len(rest) == 0:
		return runDelayed(ctx, db.Delayed(), own.Patience, out)
	case verb == "list" && len(rest) <= 2:
		return listDelayed(ctx, db.Delayed(), own.Limit, rest, out)
	case (verb == "show" || verb == "retry" || verb == "cancel") && len(rest) == 1:
		id, err := strconv.ParseInt(rest[0], 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no id of a job (keeperctl delayed list shows them)", rest[0])
		}
		return oneDelayed(ctx, db.Delayed(), verb, id, out)
	}
	return usagef("usage: keeperctl %s", delayedUsage)
}

// runDelayed asks the planners for a scan and waits for the first to have finished one.
func runDelayed(ctx context.Context, s pg.Delayed, patience time.Duration, out printer) error {
	at, err := s.Ring(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("no planner has scanned within %s (is one running?)", patience))
	defer cancel()
	for {
		scans, err := s.Scans(ctx, at)
		if err == nil && len(scans) > 0 {
			return printScans(scans, out)
		}
		if !retry.Sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

func printScans(scans []pg.Scan, out printer) error {
	var failed error
	rows, text := newTable("scanner", "found", "done", "failed", "parked"), ""
	for _, s := range scans {
		rows.add(s.Scanner, s.Found, s.Done, s.Failed, s.Parked)
		text += fmt.Sprintf("%s: found %d, done %d, failed %d, of these parked %d\n", s.Scanner, s.Found, s.Done,
			s.Failed, s.Parked)
		if s.Error != "" {
			failed = errors.Join(failed, fmt.Errorf("the scan of %s failed: %s", s.Scanner, s.Error))
		}
	}
	if out.json {
		return errors.Join(out.table(rows), failed)
	}
	return errors.Join(out.either(nil, text), failed)
}

func listDelayed(ctx context.Context, s pg.Delayed, limit int, filter []string, out printer) error {
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
	jobs, err := s.List(ctx, status, kind, limit)
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
	return out.table(rows)
}

func oneDelayed(ctx context.Context, s pg.Delayed, verb string, id int64, out printer) error {
	act := map[string]func(context.Context, pg.Delayed, int64) error{"retry": action.RetryDelayed,
		"cancel": action.CancelDelayed}[verb]
	if act != nil {
		if err := act(ctx, s, id); err != nil {
			return err
		}
	}
	j, err := action.Delayed(ctx, s, id)
	if err != nil {
		return err
	}
	return out.object(shown(j))
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
