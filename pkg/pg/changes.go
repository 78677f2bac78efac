package pg

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Seen is what a reader of changes has taken in: the place to go on from. The zero Seen is a reader that has nothing yet.
type Seen struct {
	Generation int
	// Partitions are those whose positions, orders and requests were asked for, ascending.
	Partitions []int
	// Revs is the revision of each partition of the generation up to which everything was taken in.
	Revs map[int]int64
}

// Delta is what happened to the rows of one table since. A key stands in one of the two lists, and once; Removed may name keys the reader never had.
type Delta[R perp.Row] struct {
	// Changed are the rows as they are now, also those that are new.
	Changed []R
	// Removed are the keys of rows that are no longer there, or no longer open.
	Removed []chain.Hash
}

// Changes is what became of the state between two looks at it. It holds what a [Snapshot] holds, and no more: open positions, orders and requests that
// have not ended.
type Changes struct {
	Standing
	// Seen is what the next call is to be asked with.
	Seen Seen
	// Reload says that what was held before is void: the lists are the whole state, all of it under Changed.
	Reload bool

	// Of the partitions asked for.
	Positions Delta[perp.Position]
	Orders    Delta[perp.Order]
	Requests  Delta[perp.Request]
	// Everybody's.
	Markets       Delta[perp.Market]
	Values        Delta[perp.MarketValue]
	Parameters    Delta[perp.Parameter]
	OracleSources Delta[perp.OracleSource]
}

var selectFloors = register("revision floors", `SELECT part, rev_floor FROM {state}.stream_offset`)

// tableChanges are the statements that follow one table: all rows a reader holds, and the rows that changed since, of which those it is to hold no
// longer are not present. $1 are the partitions, $2 the revision seen of each.
type tableChanges struct{ all, since tableQuery }

func followed(table perp.Table, held string) tableChanges {
	l := layouts[table]
	return tableChanges{
		all: tableQuery{table, register("all held rows of "+string(table), `SELECT `+l.selected()+`, true FROM {state}.`+string(table)+` t
			WHERE t.part = ANY ($1) AND `+held+` AND `+oneCopy(table)+` AND t.deleted_at IS NULL`)},
		since: tableQuery{table, register("changed rows of "+string(table), `SELECT `+l.selected()+`, t.deleted_at IS NULL AND `+held+`
			FROM {state}.`+string(table)+` t JOIN unnest($1::int[], $2::bigint[]) AS s (part, rev) ON t.part = s.part AND t.rev > s.rev WHERE `+oneCopy(table))},
	}
}

const (
	isActive = `t.status = 'Active'`
	isOpen   = `t.status IN ('Created', 'Updated', 'Frozen')`
)

var (
	followPositions  = followed(perp.Positions, isActive)
	followOrders     = followed(perp.Orders, isOpen)
	followRequests   = followed(perp.Requests, isOpen)
	followMarkets    = followed(perp.Markets, "true")
	followValues     = followed(perp.MarketValues, "true")
	followParameters = followed(perp.Parameters, "true")
	followSources    = followed(perp.OracleSources, "true")
)

// Changes reads what has changed in the active generation since the reader's last look, in one view of offsets and rows. Partitions are those whose
// positions, orders and requests it holds.
//
// While the generation is not level (see [Standing.Level]) there are no rows in the answer, and Seen is what was given: the caller waits for the next
// change. Everything comes anew, marked as Reload, at the first look, when the generation or the partitions asked for are others than before, and when
// the reader has slept so long that removed rows may have left no trace.
func (db *DB) Changes(ctx context.Context, partitions []int, since Seen) (c Changes, err error) {
	partitions = slices.Sorted(slices.Values(partitions))
	err = db.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c = Changes{Seen: since}
		if c.Standing, err = activeStanding(ctx, tx); err != nil || !c.Level() {
			return err
		}
		floors, err := floorsOf(ctx, tx, c.Generation)
		if err != nil {
			return err
		}
		c.Seen = Seen{Generation: c.Generation, Partitions: partitions, Revs: map[int]int64{}}
		for _, o := range c.Offsets {
			c.Seen.Revs[o.Partition] = o.Rev
		}
		c.Reload = !since.leadsTo(c.Seen, floors)
		return c.fill(ctx, tx, since)
	})
	if err != nil {
		return Changes{}, fmt.Errorf("reading changes: %w", err)
	}
	return c, nil
}

func floorsOf(ctx context.Context, tx pgx.Tx, generation int) (map[int]int64, error) {
	rows, err := tx.Query(ctx, selectFloors.in(generation))
	if err != nil {
		return nil, fmt.Errorf("reading the revision floors: %w", err)
	}
	floors := map[int]int64{}
	var part int
	var floor int64
	if _, err := pgx.ForEachRow(rows, []any{&part, &floor}, func() error { floors[part] = floor; return nil }); err != nil {
		return nil, fmt.Errorf("reading the revision floors: %w", err)
	}
	return floors, nil
}

// leadsTo tells whether the rows that changed since are enough to get from one look to another.
func (s Seen) leadsTo(now Seen, floors map[int]int64) bool {
	if s.Generation != now.Generation || !slices.Equal(s.Partitions, now.Partitions) || len(s.Revs) != len(now.Revs) {
		return false
	}
	for part, rev := range now.Revs {
		if seen, known := s.Revs[part]; !known || seen > rev || seen < floors[part] {
			return false
		}
	}
	return true
}

func (c *Changes) fill(ctx context.Context, tx pgx.Tx, since Seen) error {
	all := slices.Sorted(maps.Keys(c.Seen.Revs))
	for _, read := range []func() error{
		func() error { return fillDelta(ctx, tx, &c.Positions, followPositions, c, c.Seen.Partitions, since) },
		func() error { return fillDelta(ctx, tx, &c.Orders, followOrders, c, c.Seen.Partitions, since) },
		func() error { return fillDelta(ctx, tx, &c.Requests, followRequests, c, c.Seen.Partitions, since) },
		func() error { return fillDelta(ctx, tx, &c.Markets, followMarkets, c, all, since) },
		func() error { return fillDelta(ctx, tx, &c.Values, followValues, c, all, since) },
		func() error { return fillDelta(ctx, tx, &c.Parameters, followParameters, c, all, since) },
		func() error { return fillDelta(ctx, tx, &c.OracleSources, followSources, c, all, since) },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// fillDelta reads what changed in one table.
func fillDelta[R perp.Row](ctx context.Context, tx pgx.Tx, d *Delta[R], q tableChanges, c *Changes, parts []int, since Seen) error {
	query, args := q.all, []any{parts}
	if !c.Reload {
		revs := make([]int64, len(parts))
		for i, p := range parts {
			revs[i] = since.Revs[p]
		}
		query, args = q.since, append(args, revs)
	}
	rows, err := tx.Query(ctx, query.in(c.Generation), args...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", query.name, err)
	}
	defer rows.Close()
	gone := map[chain.Hash]bool{}
	err = eachRow(rows, layouts[query.table], func(row perp.Row) error {
		values := rows.RawValues()
		r, ok := row.(R)
		switch present := values[len(values)-1]; {
		case !ok:
			return fmt.Errorf("a %T among them", row)
		case present[0] == 1:
			d.Changed = append(d.Changed, r)
		default:
			gone[row.RowKey().Key] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", query.name, err)
	}
	// The exchange gives keys of a lost branch again: what one partition took back may stand in another one.
	for _, r := range d.Changed {
		delete(gone, r.RowKey().Key)
	}
	d.Removed = slices.SortedFunc(maps.Keys(gone), func(a, b chain.Hash) int { return bytes.Compare(a[:], b[:]) })
	return nil
}
