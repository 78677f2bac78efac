package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// selectRevs gives the revision of each partition as of a block that all of them have kept.
var selectRevs = Register("revisions at a block", `SELECT k.part, k.rev FROM generate_series(0, $1 - 1) AS p (part)
	JOIN {state}.kept_block k ON k.part = p.part AND k.block = $2`)

// aheadRows is what partitions ahead of the watermark have changed above it: of each such row what it was at the
// watermark, nil where there was none.
type aheadRows map[perp.Table]map[rowID]perp.Row

// rowID names a row of a table. While a reorg is on its way two partitions may hold the same key.
type rowID struct {
	part int
	key  chain.Hash
}

// revsAt returns for each partition a revision that no row has which a block above the watermark has touched, and
// beyond which there are none but those and what undos have restored.
func revsAt(ctx context.Context, tx pgx.Tx, s Progress) (map[int]int64, error) {
	revs, ahead := map[int]int64{}, false
	for _, o := range s.Offsets {
		revs[o.Partition] = o.Rev
		ahead = ahead || s.isAhead(o)
	}
	if !ahead {
		return revs, nil
	}
	kept := map[int]int64{}
	var part int
	var rev int64
	if err := Each(ctx, tx, []any{&part, &rev}, func() error { kept[part] = rev; return nil },
		selectRevs.In(s.Generation), s.Partitions, s.Watermark.Number); err != nil {
		return nil, fmt.Errorf("reading the revisions at block %d: %w", s.Watermark.Number, err)
	}
	for _, o := range s.Offsets {
		if s.isAhead(o) {
			revs[o.Partition] = kept[o.Partition]
		}
	}
	return revs, nil
}

// isAhead reports whether a partition has applied blocks above the watermark.
func (s Progress) isAhead(o Offset) bool { return !sameBlock(o.Tip, s.Watermark) }

// readAhead reads from the journal what lies above the watermark.
func readAhead(ctx context.Context, tx pgx.Tx, s Progress) (aheadRows, error) {
	found, batch := aheadRows{}, &pgx.Batch{}
	for _, o := range s.Offsets {
		if s.isAhead(o) {
			batch.Queue(selectPriors.In(s.Generation), o.Partition, s.Watermark.Number).
				Query(func(rows pgx.Rows) error {
					return found.collect(rows, o.Partition)
				})
		}
	}
	if batch.Len() == 0 {
		return found, nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reading what partitions have done above block %d: %w", s.Watermark.Number, err)
	}
	return found, nil
}

func (a aheadRows) collect(rows pgx.Rows, part int) error {
	for rows.Next() {
		var table perp.Table
		var key, prior []byte
		if err := rows.Scan(&table, &key, &prior); err != nil {
			return err
		}
		if a[table] == nil {
			a[table] = map[rowID]perp.Row{}
		}
		var row perp.Row
		if prior != nil {
			var err error
			if row, err = DecodeRow(table, prior); err != nil {
				return err
			}
		}
		a[table][rowID{part, HashOf(key)}] = row
	}
	return rows.Err()
}
