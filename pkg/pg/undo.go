package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/perp"
)

var (
	// selectPriors gives every row that a block above $2 touched, as it was before the first of them.
	selectPriors = Register("priors",
		`SELECT DISTINCT ON (tbl, key) tbl, key, prior FROM {state}.undo WHERE part = $1 AND block > $2
			ORDER BY tbl, key, block`)
	// buryRows makes tombstones of rows that did not exist.
	buryRows = perTable("bury rows of",
		`UPDATE {state}.{table} SET deleted_at = clock_timestamp(), rev = $2 WHERE part = $1 AND key = ANY ($3)`)

	deleteUndo = Register("delete undo", `DELETE FROM {state}.undo WHERE part = $1 AND block > $2`)
	deleteKept = Register("delete kept blocks", `DELETE FROM {state}.kept_block WHERE part = $1 AND block > $2`)
	findKept   = Register("kept block",
		`SELECT block, hash, parent, time_ms FROM {state}.kept_block WHERE part = $1 AND block = $2`)

	// pruneTombstones forgets removed rows after a while; rev_floor shows readers that follow revisions what they can
	// no longer see.
	pruneTombstones = perTable("prune tombstones of", `WITH gone AS (
			DELETE FROM {state}.{table} WHERE part = $1 AND deleted_at < clock_timestamp() - interval '10 minutes'
				RETURNING rev
		)
		UPDATE {state}.stream_offset SET rev_floor = greatest(rev_floor, (SELECT max(rev) FROM gone))
		WHERE part = $1 AND EXISTS (SELECT FROM gone)`)
)

// tombstoneCheckEvery is how many blocks lie between two looks for old tombstones.
const tombstoneCheckEvery = 256

// errTooDeep is what an undo past the journal meets.
var errTooDeep = errors.New("the journal does not reach back that far")

// Rewind is a step back.
type Rewind struct {
	// Next is the offset after the record that asked for it.
	Next int64
	// Mark is that of the record before Next.
	Mark Mark
	// Epoch is the scanner's claim in force.
	Epoch uint64
	// Ancestor is the block that becomes the tip again.
	Ancestor chain.BlockRef
	// Accepted is true when the operator knows of it: a halt is lifted, and the finalized block goes back to the
	// ancestor if it was above.
	Accepted bool
}

// Undo takes back every block above the ancestor in one transaction: every row is then, to the letter, what it was when
// the ancestor was the tip. The ancestor must be a kept block; where it is none any more, only a rebuild helps. For
// other errors see [Partition.Commit].
func (p *Partition) Undo(ctx context.Context, r Rewind) error {
	ancestor, err := p.kept(ctx, r.Ancestor)
	if err != nil {
		return err
	}
	next := p.offset
	next.Next, next.Mark, next.Epoch, next.Tip = r.Next, r.Mark, max(p.offset.Epoch, r.Epoch), ancestor
	next.Rev = p.nextRev()
	if r.Accepted {
		next.Halted = ""
		if next.Finalized.Number > ancestor.Number {
			next.Finalized = ancestor
		}
	}
	return p.write(ctx, next, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		failpoint.Hit("pg.undo")
		return p.undoBatch(ctx, tx, next)
	})
}

// undoBatch takes everything above the next tip back.
func (p *Partition) undoBatch(ctx context.Context, tx pgx.Tx, next Offset) (*pgx.Batch, error) {
	batch := &pgx.Batch{}
	if err := p.restore(ctx, tx, batch, next); err != nil {
		return nil, err
	}
	batch.Queue(deleteUndo.In(p.generation), next.Partition, next.Tip.Number)
	batch.Queue(deleteKept.In(p.generation), next.Partition, next.Tip.Number)
	return batch, nil
}

// restore queues what gives every row back its former self.
func (p *Partition) restore(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, next Offset) error {
	rows, err := tx.Query(ctx, selectPriors.In(p.generation), next.Partition, next.Tip.Number)
	if err != nil {
		return err
	}
	defer rows.Close()
	var former rowSets
	unknown := map[perp.Table][][]byte{}
	for rows.Next() {
		var table perp.Table
		var key, prior []byte
		if err := rows.Scan(&table, &key, &prior); err != nil {
			return err
		}
		if prior == nil {
			unknown[table] = append(unknown[table], key)
		} else if err := former.add(table, prior); err != nil {
			return Refuse(err)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	former.queue(batch, p.generation, next.Partition, next.Rev)
	for table, keys := range unknown {
		batch.Queue(buryRows[table].In(p.generation), next.Partition, next.Rev, keys)
	}
	return nil
}

// kept finds the ancestor among the kept blocks.
func (p *Partition) kept(ctx context.Context, ancestor chain.BlockRef) (chain.BlockRef, error) {
	doing := fmt.Sprintf("looking for block %d in partition %d", ancestor.Number, p.offset.Partition)
	found, err := One(ctx, p.db, doing, scanBlock, findKept.In(p.generation), p.offset.Partition, ancestor.Number)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return chain.BlockRef{},
			Refusef("partition %d stands at block %d and cannot go back to block %d: %w (rebuild from the log topic)",
				p.offset.Partition, p.offset.Tip.Number, ancestor.Number, errTooDeep)
	case err != nil:
		return chain.BlockRef{}, err
	case !sameBlock(found, ancestor):
		return chain.BlockRef{}, Refusef("partition %d has %s as block %d and cannot go back to %s", p.offset.Partition,
			found.Hash, found.Number, ancestor.Hash)
	}
	return found, nil
}

func (p *Partition) queueTombstones(batch *pgx.Batch) {
	for _, s := range pruneTombstones {
		batch.Queue(s.In(p.generation), p.offset.Partition)
	}
}
