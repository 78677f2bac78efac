package pg

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Seen is what a reader of changes has taken in: the place to go on from. The zero Seen is a reader that has nothing
// yet.
type Seen struct {
	Generation int
	// Partitions are those whose positions, orders and requests were asked for, ascending.
	Partitions []int
	// Revs is the revision of each partition of the generation up to which everything was taken in: that of the block
	// At, not of the partition's tip.
	Revs map[int]int64
	// At is the block that everything was taken in as of.
	At chain.BlockRef
}

// Delta is what happened to the rows of one table since. A key stands in one of the two lists, and once; Removed may
// name keys the reader never had.
type Delta[R perp.Row] struct {
	// Changed are the rows as they are at the watermark, also those that are new. It may name rows that the reader has
	// already.
	Changed []R
	// Parts are the partitions that the rows of Changed belong to, one for each.
	Parts []int
	// Removed are the keys of rows that are not there at the watermark, or not open.
	Removed []chain.Hash
}

// Changes are the changes of the state between two looks at it, each as of the watermark of its moment, which may also
// have gone back. It holds what a [Snapshot] holds, and no more: open positions, orders and requests that have not
// ended.
type Changes struct {
	Progress
	// Seen is what the next call is to be asked with.
	Seen Seen
	// Reload is true when what was held before is void and no rows are in the answer: the caller has to [DB.Load].
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

var selectFloors = Register("revision floors", `SELECT part, rev_floor FROM {state}.stream_offset`)

// tableChanges follow one table: all rows a reader holds, and the rows that changed since, of which those it is to hold
// no longer are not present. $1 are the partitions, $2 the revision seen of each. Beside its columns a row comes with
// its partition and with whether it is present.
type tableChanges struct {
	all, since tableQuery
	held       func(perp.Row) bool // what the statements say of a row of the table
}

func followed(table perp.Table, held string, holds func(perp.Row) bool) tableChanges {
	l := layouts[table]
	return tableChanges{
		held: holds,
		all: tableQuery{table, Register("all held rows of "+string(table),
			`SELECT `+l.selected()+`, t.part, true FROM {state}.`+string(table)+` t
			WHERE t.part = ANY ($1) AND `+held+` AND `+oneCopy(table)+` AND t.deleted_at IS NULL`)},
		since: tableQuery{table,
			Register("changed rows of "+string(table), `SELECT `+l.selected()+`, t.part, t.deleted_at IS NULL AND `+
				held+`
			FROM {state}.`+string(table)+` t JOIN unnest($1::int[], $2::bigint[]) AS s (part, rev) ON t.part = s.part
				AND t.rev > s.rev WHERE `+oneCopy(table))},
	}
}

const (
	isActive = `t.status = 'Active'`
	isOpen   = `t.status IN ('Created', 'Updated', 'Frozen')`
)

func rowIsActive(r perp.Row) bool {
	p, is := r.(perp.Position)
	return is && p.Status == perp.Active
}

func rowIsOpen(r perp.Row) bool {
	var status perp.Status
	switch r := r.(type) {
	case perp.Order:
		status = r.Status
	case perp.Request:
		status = r.Status
	}
	return status == perp.Created || status == perp.Updated || status == perp.Frozen
}

func anyRow(perp.Row) bool { return true }

var (
	followPositions  = followed(perp.Positions, isActive, rowIsActive)
	followOrders     = followed(perp.Orders, isOpen, rowIsOpen)
	followRequests   = followed(perp.Requests, isOpen, rowIsOpen)
	followMarkets    = followed(perp.Markets, "true", anyRow)
	followValues     = followed(perp.MarketValues, "true", anyRow)
	followParameters = followed(perp.Parameters, "true", anyRow)
	followSources    = followed(perp.OracleSources, "true", anyRow)
)

// Changes reads what has changed in the active generation since the reader's last look, in one view of offsets and
// rows. Partitions are those whose positions, orders and requests it holds.
//
// Everything is as of the watermark, the highest block that all partitions have applied: what partitions ahead of it
// have done above it is left out, by the journal that could undo it. So a reader sees each block that the slowest
// partition has reached, and never a mixture of blocks.
//
// While there is no view (see [Progress.HasView]) there are no rows in the answer, and Seen is what was given: the
// caller waits for the next change. Without rows and marked as Reload it is at the first look, when the generation or
// the partitions asked for are others than before, and when the reader has slept so long that removed rows may have
// left no trace.
func (db *DB) Changes(ctx context.Context, partitions []int, since Seen) (c Changes, err error) {
	partitions = slices.Sorted(slices.Values(partitions))
	err = db.Read(ctx, "reading changes", func(ctx context.Context, tx pgx.Tx) error {
		c = Changes{Seen: since}
		if err := c.look(ctx, tx, partitions); err != nil || !c.HasView() {
			return err
		}
		floors, err := floorsOf(ctx, tx, c.Generation)
		if err != nil {
			return err
		}
		c.Reload = !since.reaches(c.Seen, c.Offsets, floors)
		if c.Reload || c.Unchanged(since) {
			return nil
		}
		ahead, err := readAhead(ctx, tx, c.Progress)
		if err != nil {
			return err
		}
		return c.fill(ctx, tx, since, ahead)
	})
	if err != nil {
		return Changes{}, err
	}
	return c, nil
}

// look finds out how far the state has come.
func (c *Changes) look(ctx context.Context, tx pgx.Tx, partitions []int) (err error) {
	if c.Progress, err = ActiveProgress(ctx, tx); err != nil || !c.HasView() {
		return err
	}
	revs, err := revsAt(ctx, tx, c.Progress)
	if err != nil {
		return err
	}
	c.Seen = Seen{Generation: c.Generation, Partitions: partitions, Revs: revs, At: c.Watermark}
	return nil
}

func floorsOf(ctx context.Context, tx pgx.Tx, generation int) (map[int]int64, error) {
	floors := map[int]int64{}
	var part int
	var floor int64
	if err := Each(ctx, tx, []any{&part, &floor}, func() error { floors[part] = floor; return nil },
		selectFloors.In(generation)); err != nil {
		return nil, fmt.Errorf("reading the revision floors: %w", err)
	}
	return floors, nil
}

// reaches reports whether the rows that changed since are enough to get from one look to another. A revision that is
// higher than that of the watermark is no hindrance: the watermark has gone back, and what lies above it is known from
// the journal.
func (s Seen) reaches(now Seen, offsets []Offset, floors map[int]int64) bool {
	if s.Generation != now.Generation || !slices.Equal(s.Partitions, now.Partitions) || len(s.Revs) != len(offsets) {
		return false
	}
	for _, o := range offsets {
		if seen, known := s.Revs[o.Partition]; !known || seen > o.Rev || seen < floors[o.Partition] {
			return false
		}
	}
	return true
}

// Unchanged reports whether a reader who has seen this much holds the state already. There are no rows in the answer
// then.
func (c *Changes) Unchanged(since Seen) bool {
	return !c.Reload && c.Seen.At == since.At && maps.Equal(c.Seen.Revs, since.Revs)
}

func (c *Changes) fill(ctx context.Context, tx pgx.Tx, since Seen, ahead aheadRows) error {
	all := slices.Sorted(maps.Keys(c.Seen.Revs))
	for _, read := range []func() error{
		func() error {
			return fillDelta(ctx, tx, &c.Positions, followPositions, c, c.Seen.Partitions, since, ahead)
		},
		func() error { return fillDelta(ctx, tx, &c.Orders, followOrders, c, c.Seen.Partitions, since, ahead) },
		func() error {
			return fillDelta(ctx, tx, &c.Requests, followRequests, c, c.Seen.Partitions, since, ahead)
		},
		func() error { return fillDelta(ctx, tx, &c.Markets, followMarkets, c, all, since, ahead) },
		func() error { return fillDelta(ctx, tx, &c.Values, followValues, c, all, since, ahead) },
		func() error { return fillDelta(ctx, tx, &c.Parameters, followParameters, c, all, since, ahead) },
		func() error { return fillDelta(ctx, tx, &c.OracleSources, followSources, c, all, since, ahead) },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// fillDelta reads what changed in one table.
func fillDelta[R perp.Row](ctx context.Context, tx pgx.Tx, d *Delta[R], q tableChanges, c *Changes, parts []int,
	since Seen, ahead aheadRows) error {
	revs := make([]int64, len(parts))
	for i, p := range parts {
		revs[i] = since.Revs[p]
	}
	gone := map[chain.Hash]bool{}
	err := q.each(ctx, tx, question{Statement: q.since.Statement, generation: c.Generation, parts: parts, revs: revs},
		ahead[q.since.table], func(id rowID, row perp.Row) error {
			if row == nil {
				gone[id.key] = true
				return nil
			}
			return d.add(id.part, row)
		})
	if err != nil {
		return err
	}
	// The exchange gives keys of a lost branch again: what one partition took back may stand in another one.
	for _, r := range d.Changed {
		delete(gone, r.RowKey().Key)
	}
	d.Removed = slices.SortedFunc(maps.Keys(gone), func(a, b chain.Hash) int { return bytes.Compare(a[:], b[:]) })
	return nil
}

func (d *Delta[R]) add(part int, row perp.Row) error {
	r, ok := row.(R)
	if !ok {
		return fmt.Errorf("a %T among rows of another table", row)
	}
	d.Changed, d.Parts = append(d.Changed, r), append(d.Parts, part)
	return nil
}

// question is one of the two statements of tableChanges, with what it is asked for.
type question struct {
	*Statement
	generation int
	parts      []int
	revs       []int64 // seen of each partition; nil for all rows
}

// each yields the rows as they are at the watermark, and nil for those that are not there or not held. Priors are those
// of the table above the watermark.
func (q tableChanges) each(ctx context.Context, tx pgx.Tx, ask question, priors map[rowID]perp.Row,
	yield func(rowID, perp.Row) error) error {
	args := []any{ask.parts}
	if ask.revs != nil {
		args = append(args, ask.revs)
	}
	rows, err := tx.Query(ctx, ask.In(ask.generation), args...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", ask.name, err)
	}
	defer rows.Close()
	err = eachRow(rows, layouts[q.table()], func(row perp.Row) error {
		part, present := origin(rows.RawValues())
		id := rowID{part, row.RowKey().Key}
		if _, later := priors[id]; later {
			return nil // as it was at the watermark it comes below
		}
		if !present {
			row = nil
		}
		return yield(id, row)
	})
	for id, prior := range priors {
		if err != nil {
			break
		}
		if !slices.Contains(ask.parts, id.part) || q.table().Replicated() && id.part != 0 {
			continue
		}
		if prior != nil && !q.held(prior) {
			prior = nil
		}
		err = yield(id, prior)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", ask.name, err)
	}
	return nil
}

func (q tableChanges) table() perp.Table { return q.all.table }

// origin reads what a row of tableChanges comes with: its partition, and whether it is present.
func origin(values [][]byte) (part int, present bool) {
	n := len(values)
	return int(binary.BigEndian.Uint16(values[n-2])), values[n-1][0] == 1
}
