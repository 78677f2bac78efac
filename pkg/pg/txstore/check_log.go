package txstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/checklog"
)

var (
	saveChecks = pg.Register("save preflight checks",
		`INSERT INTO keeper.preflight_check (intent, at, stage, verdict, said, said_by, block)
		SELECT c.intent, c.at, c.stage, c.verdict, c.said, c.said_by, c.block
		FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
			AS c (intent, at, stage, verdict, said, said_by, block)`)
	pruneChecks  = pg.Register("drop old preflight checks", `DELETE FROM keeper.preflight_check WHERE at < $1`)
	selectChecks = pg.Register("preflight checks of attempts", `SELECT intent, at, stage, verdict, said, said_by, block
		FROM keeper.preflight_check WHERE intent = ANY ($1)`)
)

// CheckLog stores the verdicts of checks on attempts before they got their nonces.
type CheckLog struct{ db *pg.DB }

// NewCheckLog returns the log of checks.
func NewCheckLog(db *pg.DB) CheckLog { return CheckLog{db} }

// Save implements checklog.Store.
func (s CheckLog) Save(ctx context.Context, entries []checklog.Entry) error {
	n := len(entries)
	intents, at, blocks := make([]int64, n), make([]time.Time, n), make([]int64, n)
	checks, verdicts, details, by := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, e := range entries {
		intents[i], at[i], blocks[i] = e.Intent, e.At, int64(e.Block)
		checks[i], verdicts[i], details[i], by[i] = e.Check, e.Verdict, pg.Escape(e.Detail), pg.Escape(e.By)
	}
	_, err := s.db.Run(ctx, fmt.Sprintf("keeping what %d checks have said", n), saveChecks.SQL(), intents, at, checks,
		verdicts, details, by, blocks)
	return err
}

// Prune implements checklog.Store.
func (s CheckLog) Prune(ctx context.Context, before time.Time) error {
	_, err := s.db.Run(ctx, "dropping what checks said before "+before.Format(time.RFC3339), pruneChecks.SQL(), before)
	return err
}

// Of returns what is kept of some attempts, by their intents, in the order in which it was noted.
func (s CheckLog) Of(ctx context.Context, intents []int64) ([]checklog.Entry, error) {
	entries, err := pg.List(ctx, s.db, "reading what checks have said",
		pg.Columns(func(e *checklog.Entry) []any {
			return []any{&e.Intent, &e.At, &e.Check, &e.Verdict, pg.Text(&e.Detail), pg.Text(&e.By), &e.Block}
		}), selectChecks.SQL(), intents)
	slices.SortStableFunc(entries, checklog.Compare)
	return entries, err
}
