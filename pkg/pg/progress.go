package pg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
)

var (
	selectPartitions = Register("partitions", `SELECT coalesce(partitions, 0) FROM keeper.generation WHERE number = $1`)
	selectOffsets    = Register("offsets", `SELECT `+offsetColumns+` FROM {state}.stream_offset ORDER BY part`)
	selectCommonAt   = Register("common block of a number",
		`SELECT block, hash, parent, time_ms
		FROM generate_series(0, $1 - 1) AS p (part) JOIN {state}.kept_block k ON k.part = p.part AND k.block = $2
		GROUP BY block, hash, parent, time_ms HAVING count(*) = $1`)
	selectCommon = Register("highest common block",
		`SELECT block, hash, parent, time_ms FROM {state}.kept_block
		WHERE block <= $2 GROUP BY block, hash, parent, time_ms HAVING count(*) = $1 ORDER BY block DESC LIMIT 1`)
)

// Progress is how far a generation has come.
type Progress struct {
	Generation int
	// Partitions is how many partitions the log topic has; 0 until the first claim.
	Partitions int
	// Offsets has one entry for each partition that was ever claimed, in order.
	Offsets []Offset
	// Watermark is the highest block that all partitions have applied; its Hash is zero while there is none.
	Watermark chain.BlockRef
	// Halted is the reason why nobody may act on the state until the operator has looked; empty when all is well.
	Halted string
}

// HasView reports whether there is a state to judge by: that of the watermark (see [DB.Changes]). There is none while
// the state is halted, because finality was broken; while the partitions have no block in common that all of them could
// go back to; and while one is below a block that it knows to be finalized: its topic has lost its end, and what was
// decided above would be decided again. A partition that has stopped for another reason only keeps the watermark
// from rising.
func (s Progress) HasView() bool {
	if s.Halted != "" || s.Watermark.Hash.IsZero() {
		return false
	}
	return !slices.ContainsFunc(s.Offsets, func(o Offset) bool { return o.Tip.Number < o.Finalized.Number })
}

// Level reports whether all partitions stand at the watermark, so that the tables hold its state, and none of a later
// block. Who reads tables otherwise than by [DB.Changes] or [DB.Snapshot], and compares rows of several partitions,
// asks for it.
func (s Progress) Level() bool {
	return s.HasView() && !slices.ContainsFunc(s.Offsets,
		func(o Offset) bool { return !sameBlock(o.Tip, s.Watermark) })
}

// Skew is by how many blocks the foremost partition is ahead of the watermark.
func (s Progress) Skew() uint64 {
	var foremost uint64
	for _, o := range s.Offsets {
		foremost = max(foremost, o.Tip.Number)
	}
	return foremost - min(foremost, s.Watermark.Number)
}

// Finalized is the highest block that all partitions know to be finalized; its Hash is zero while there is none.
func (s Progress) Finalized() (lowest chain.BlockRef) {
	if len(s.Offsets) < s.Partitions {
		return chain.BlockRef{}
	}
	for i, o := range s.Offsets {
		if i == 0 || o.Finalized.Number < lowest.Number {
			lowest = o.Finalized
		}
	}
	return lowest
}

// ProgressOf returns how far a generation has come, be it the active one or not.
func (db *DB) ProgressOf(ctx context.Context, generation int) (s Progress, err error) {
	err = db.Read(ctx, fmt.Sprintf("looking at generation %d", generation), func(ctx context.Context, tx pgx.Tx) error {
		s, err = progress(ctx, tx, generation)
		return err
	})
	return s, err
}

// ActiveProgress returns where the active generation stands, read in a transaction of the caller.
func ActiveProgress(ctx context.Context, tx pgx.Tx) (Progress, error) {
	generation, err := activeGeneration(ctx, tx)
	if err != nil {
		return Progress{}, err
	}
	return progress(ctx, tx, generation)
}

func progress(ctx context.Context, tx pgx.Tx, generation int) (Progress, error) {
	s := Progress{Generation: generation}
	if err := tx.QueryRow(ctx, selectPartitions.SQL(), generation).Scan(&s.Partitions); err != nil {
		return Progress{}, fmt.Errorf("reading generation %d: %w", generation, err)
	}
	var err error
	if s.Offsets, err = Select(ctx, tx, collectOffset, selectOffsets.In(generation)); err != nil {
		return Progress{}, fmt.Errorf("reading the offsets of generation %d: %w", generation, err)
	}
	s.Halted = haltOf(s.Offsets)
	s.Watermark, err = watermark(ctx, tx, s)
	return s, err
}

// haltOf joins why nobody may act, as partitions say it, each reason once.
func haltOf(offsets []Offset) string {
	var reasons []string
	for _, o := range offsets {
		if o.Halted != "" && !slices.Contains(reasons, o.Halted) {
			reasons = append(reasons, o.Halted)
		}
	}
	return strings.Join(reasons, "; ")
}

// watermark takes the short way when all tips are the same. Otherwise it is nearly always the lowest tip; all kept
// blocks are compared only when that is on another branch than the others.
func watermark(ctx context.Context, tx pgx.Tx, s Progress) (chain.BlockRef, error) {
	lowest, same := commonTip(s)
	if same {
		return lowest, nil
	}
	for _, query := range []*Statement{selectCommonAt, selectCommon} {
		common, err := Select(ctx, tx, scanBlock, query.In(s.Generation), s.Partitions, lowest.Number)
		if err != nil {
			return chain.BlockRef{}, fmt.Errorf("comparing the partitions of generation %d: %w", s.Generation, err)
		}
		if len(common) == 1 {
			return common[0], nil
		}
	}
	return chain.BlockRef{}, nil
}

// commonTip returns the tip of all partitions, if it is the same, and the lowest one otherwise. While partitions are
// missing the zero block is all they have.
func commonTip(s Progress) (lowest chain.BlockRef, same bool) {
	if s.Partitions == 0 || len(s.Offsets) < s.Partitions {
		return chain.BlockRef{}, true
	}
	lowest, same = s.Offsets[0].Tip, true
	for _, o := range s.Offsets[1:] {
		same = same && sameBlock(o.Tip, lowest)
		if o.Tip.Number < lowest.Number {
			lowest = o.Tip
		}
	}
	return lowest, same
}
