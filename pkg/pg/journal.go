package pg

import (
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var (
	insertUndo = Register("insert undo", `INSERT INTO {state}.undo (part, block, tbl, key, prior)
		SELECT $1, u.block, u.tbl, u.key, u.prior FROM unnest($2::bigint[], $3::text[], $4::bytea[], $5::bytea[]) AS u
			(block, tbl, key, prior)`)
	insertKept = Register("insert kept blocks",
		`INSERT INTO {state}.kept_block (part, block, hash, parent, time_ms, rev, next_offset, mark)
		SELECT $1, u.* FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[],
			$8::bytea[]) AS u`)
	pruneUndo    = Register("prune undo", `DELETE FROM {state}.undo WHERE part = $1 AND block <= $2`)
	pruneKept    = Register("prune kept blocks", `DELETE FROM {state}.kept_block WHERE part = $1 AND block < $2`)
	notifyChange = Register("notify change", `SELECT pg_notify('state_changed', $1)`)
)

// commitBatch is all a step does to rows and journal, sent to the server in one go.
func (p *Partition) commitBatch(c Commit, next Offset) (*pgx.Batch, error) {
	batch := &pgx.Batch{}
	if len(c.Blocks) > 0 {
		if err := p.queueBlocks(batch, c, next); err != nil {
			return nil, err
		}
	}
	return batch, nil
}

// queueBlocks writes what blocks did.
func (p *Partition) queueBlocks(batch *pgx.Batch, c Commit, next Offset) error {
	part, oldest, from := next.Partition, next.horizon(), 0
	for i, b := range c.Blocks {
		if b.isRange() {
			oldest, from = max(oldest, b.Number), i
		}
	}
	var kept keptBlocks
	if parent, exists := FirstParent(c.Blocks[0].BlockRef); exists && p.offset.Tip.Hash.IsZero() &&
		!c.Blocks[0].isRange() && parent.Number >= oldest {
		kept.add(parent, p.offset.Rev, Place{})
	}
	var journal journal
	for _, b := range c.Blocks[from:] {
		if b.Number >= oldest { // else it is so far behind that it would be pruned at once
			kept.add(b.BlockRef, revOf(b, p.offset, next), b.Source)
		}
		if b.Number > oldest {
			if err := journal.add(b); err != nil {
				return err
			}
		}
	}
	// First: a range ends all that came before it, be it numbered as it may.
	batch.Queue(pruneUndo.In(p.generation), part, oldest)
	batch.Queue(pruneKept.In(p.generation), part, oldest)
	kept.queue(batch, p.generation, part)
	journal.queue(batch, p.generation, part)
	if err := p.queueRows(batch, c, next.Rev); err != nil {
		return err
	}
	if next.Tip.Number/tombstoneCheckEvery != p.offset.Tip.Number/tombstoneCheckEvery {
		p.queueTombstones(batch)
	}
	return nil
}

// revOf is the revision a block is kept with. A step has one revision for all its blocks: rows that blocks above this
// one touched in the same step must not look as old as it.
func revOf(b AppliedBlock, before, after Offset) int64 {
	if sameBlock(b.BlockRef, after.Tip) {
		return after.Rev
	}
	return before.Rev
}

// FirstParent is what the very first block stands on: its parent, of which only number and hash are known. It is kept,
// so that the first block can be taken back as well. There is none under block 0.
func FirstParent(first chain.BlockRef) (parent chain.BlockRef, exists bool) {
	if first.Number == 0 || first.Parent.IsZero() {
		return chain.BlockRef{}, false
	}
	return chain.BlockRef{Number: first.Number - 1, Hash: first.Parent}, true
}

// horizon is the oldest block that can be gone back to.
func (o Offset) horizon() uint64 {
	if o.Tip.Number < chain.UndoHorizon {
		return 0
	}
	return o.Tip.Number - chain.UndoHorizon
}

// queueRows writes each touched row once, as the last block left it.
func (p *Partition) queueRows(batch *pgx.Batch, c Commit, rev int64) error {
	last := map[perp.RowKey]perp.Row{}
	for _, b := range c.Blocks {
		for _, change := range b.Changes {
			last[change.After.RowKey()] = change.After
		}
	}
	var rows rowSets
	var tuple []byte
	for key, row := range last {
		var err error
		if tuple, err = layouts[key.Table].encode(tuple[:0], row); err != nil {
			return err
		}
		if err := rows.add(key.Table, tuple); err != nil {
			return err
		}
	}
	rows.queue(batch, p.generation, p.offset.Partition, rev)
	return nil
}

// keptBlocks are blocks, column by column.
type keptBlocks struct {
	numbers, times  []int64
	hashes, parents [][]byte
	revs            []int64
	ends            []*int64
	marks           [][]byte
}

func (k *keptBlocks) add(b chain.BlockRef, rev int64, from Place) {
	k.numbers, k.times = append(k.numbers, int64(b.Number)), append(k.times, int64(b.TimeMs))
	k.hashes, k.parents = append(k.hashes, b.Hash[:]), append(k.parents, b.Parent[:])
	k.revs = append(k.revs, rev)
	var end *int64
	if from.Mark != (Mark{}) {
		end = &from.Next
	}
	k.ends, k.marks = append(k.ends, end), append(k.marks, from.Mark.stored())
}

func (k *keptBlocks) queue(batch *pgx.Batch, generation, part int) {
	if len(k.numbers) > 0 {
		batch.Queue(insertKept.In(generation), part, k.numbers, k.hashes, k.parents, k.times, k.revs, k.ends,
			k.marks)
	}
}

// journal is the undo rows of a step, column by column.
type journal struct {
	blocks []int64
	tables []string
	keys   [][]byte
	priors [][]byte // tuples; nil where there was no row
}

func (j *journal) add(b AppliedBlock) error {
	for _, change := range b.Changes {
		key := change.After.RowKey()
		var prior []byte
		if change.Before != nil {
			var err error
			if prior, err = layouts[key.Table].encode(nil, change.Before); err != nil {
				return err
			}
		}
		j.blocks, j.tables = append(j.blocks, int64(b.Number)), append(j.tables, string(key.Table))
		j.keys, j.priors = append(j.keys, key.Key[:]), append(j.priors, prior)
	}
	return nil
}

func (j *journal) queue(batch *pgx.Batch, generation, part int) {
	for from := 0; from < len(j.blocks); from += rowSetSize {
		to := min(from+rowSetSize, len(j.blocks))
		batch.Queue(insertUndo.In(generation), part, j.blocks[from:to], j.tables[from:to], j.keys[from:to],
			j.priors[from:to])
	}
}
