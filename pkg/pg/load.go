package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// NoStatementLimit lifts the limit from the statements of one transaction.
var NoStatementLimit = Register("no statement limit", `SELECT set_config('statement_timeout', '0', true)`)

// patienceRows is how many rows are read between two looks at the clock.
const patienceRows = 1024

// Load reads everything a reader of some partitions holds, in one view: the rows of which [DB.Changes] then returns
// what becomes of them. Each row goes to take as it arrives, with the partition it belongs to, so that no more than one
// is held here however many there are; after an error what was taken is worth nothing. The answer holds where to go on
// from; its lists are empty. While there is no view (see [Progress.HasView]) there are no rows.
//
// It takes as long as it takes: the limit on a statement does not hold for it, and it ends when the database has sent
// nothing for longer than any other question may take.
func (db *DB) Load(ctx context.Context, partitions []int, take func(part int, row perp.Row) error) (c Changes,
	err error) {
	partitions = slices.Sorted(slices.Values(partitions))
	err = db.unhurried(ctx, func(ctx context.Context, v view) error {
		c = Changes{}
		if err := c.look(ctx, v.Tx, partitions); err != nil || !c.HasView() {
			return err
		}
		c.Reload = true
		ahead, err := readAhead(ctx, v.Tx, c.Progress)
		if err != nil {
			return err
		}
		count := 0
		return c.load(ctx, v.Tx, ahead, func(id rowID, row perp.Row) error {
			if count++; count%patienceRows == 0 {
				v.notified()
			}
			if row == nil {
				return nil
			}
			return take(id.part, row)
		})
	})
	if err != nil {
		return Changes{}, fmt.Errorf("loading partitions %v: %w", partitions, err)
	}
	return c, nil
}

// view is a transaction that reads for long, and how to say that the database is still sending.
type view struct {
	pgx.Tx
	notified func()
}

var errStalled = errors.New("the database has sent nothing")

// unhurried runs f as [DB.read] does, without a limit on its statements. It ends when the database has sent nothing for
// longer than any other question may take.
func (db *DB) unhurried(ctx context.Context, f func(context.Context, view) error) error {
	patience := db.cfg.ConnectTimeout + 2*db.cfg.StatementTimeout
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(patience, func() { cancel(fmt.Errorf("%w for %s", errStalled, patience)) })
	defer stalled.Stop()
	err := pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, NoStatementLimit.SQL()); err != nil {
				return err
			}
			return f(ctx, view{tx, func() { stalled.Reset(patience) }})
		})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errStalled) {
		return cause
	}
	return err
}

// load reads all tables.
func (c *Changes) load(ctx context.Context, tx pgx.Tx, ahead aheadRows, yield func(rowID, perp.Row) error) error {
	everybody := slices.Sorted(maps.Keys(c.Seen.Revs))
	for _, t := range []struct {
		tableChanges
		parts []int
	}{
		{followMarkets, everybody}, {followValues, everybody}, {followParameters, everybody},
		{followSources, everybody},
		{followPositions, c.Seen.Partitions}, {followOrders, c.Seen.Partitions}, {followRequests, c.Seen.Partitions},
	} {
		ask := question{Statement: t.all.Statement, generation: c.Generation, parts: t.parts}
		if err := t.each(ctx, tx, ask, ahead[t.table()], yield); err != nil {
			return err
		}
	}
	return nil
}

// With is how far a reader has seen that takes the partitions of another look at the same generation to its own: no
// further than both have in any partition. What one of them has seen alone comes again with the next changes.
func (s Seen) With(other Seen) Seen {
	if s.Revs == nil {
		return other
	}
	merged := Seen{Generation: s.Generation, At: s.At, Revs: maps.Clone(s.Revs)}
	merged.Partitions = append(slices.Clone(s.Partitions), other.Partitions...)
	slices.Sort(merged.Partitions)
	merged.Partitions = slices.Compact(merged.Partitions)
	for part, rev := range other.Revs {
		if own, known := merged.Revs[part]; !known || rev < own {
			merged.Revs[part] = rev
		}
	}
	return merged
}

// Only is how far a reader has seen that keeps these of its partitions.
func (s Seen) Only(partitions []int) Seen {
	s.Partitions = slices.DeleteFunc(slices.Clone(s.Partitions),
		func(part int) bool { return !slices.Contains(partitions, part) })
	return s
}
