package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/perp"
)

// Commit is one step of a partition: records read, blocks applied. A step without blocks moves the offset only.
type Commit struct {
	// Next is the offset after the last record of the step.
	Next int64
	// Mark is that of the record before Next.
	Mark Mark
	// Epoch is the scanner's claim in force.
	Epoch uint64
	// Finalized is the highest finalized block that is known; the zero value, or a lower one than before, changes
	// nothing.
	Finalized chain.BlockRef
	// Halted, when set, is why nobody may act on the state any more; only an accepted [Rewind] lifts it.
	Halted string
	// Blocks are the blocks and ranges applied, each standing on the one before; the first stands on the tip, if there
	// is one.
	Blocks []AppliedBlock
}

// AppliedBlock is a block, or a range of finalized blocks, and what it did to the rows.
type AppliedBlock struct {
	chain.BlockRef // of a range the last one
	// Before is the block under a range, and zero for a single block. A range cannot be undone, nor anything before it:
	// no journal is kept.
	Before chain.BlockRef
	// Changes has one entry for each row the block touched.
	Changes []Change
	// Source is where the log topic has its last record.
	Source Place
}

// isRange reports whether it is a range, and not a block.
func (b AppliedBlock) isRange() bool { return !b.Before.Hash.IsZero() }

// follows reports whether a block or range stands on a block.
func (b AppliedBlock) follows(tip chain.BlockRef) bool {
	if b.isRange() {
		return sameBlock(b.Before, tip) && b.Number > tip.Number
	}
	return b.Follows(tip)
}

// Change is a row before and after a block. Before is nil where there was none.
type Change struct{ Before, After perp.Row }

// Commit writes a step in one transaction: rows, journal and offset, or nothing.
//
// An error for which NotOwner is true ends the claim, and one for which Refused is true will come again. After any
// other error the step may be tried again, or another one from [Partition.Offset]: if the reply of the COMMIT was lost,
// Commit has already asked whether it took effect, and only if that could not be found out either (the error says so)
// must [Partition.Refresh] come first.
func (p *Partition) Commit(ctx context.Context, c Commit) error {
	next, err := p.offset.after(c, p.nextRev())
	if err != nil {
		return err
	}
	batch, err := p.commitBatch(c, next)
	if err != nil {
		return Refuse(err)
	}
	return p.write(ctx, next, func(context.Context, pgx.Tx) (*pgx.Batch, error) { return batch, nil })
}

// after is where a partition stands after a step, with a revision if it touches rows.
func (o Offset) after(c Commit, rev int64) (Offset, error) {
	next := o
	next.Next, next.Mark, next.Epoch = c.Next, c.Mark, max(o.Epoch, c.Epoch)
	if c.Next < o.Next {
		return o, Refusef("a step of partition %d cannot go from offset %d back to %d", o.Partition, o.Next, c.Next)
	}
	if c.Halted != "" {
		next.Halted = c.Halted
	}
	next.Finalized = higher(next.Finalized, c.Finalized)
	touched := false
	for _, b := range c.Blocks {
		if !next.Tip.Hash.IsZero() && !b.follows(next.Tip) {
			return o, Refusef("block %d %s does not follow block %d %s of partition %d", b.Number, b.Hash,
				next.Tip.Number, next.Tip.Hash, o.Partition)
		}
		next.Tip = b.BlockRef
		if b.isRange() {
			next.Finalized = higher(next.Finalized, b.BlockRef)
		}
		touched = touched || len(b.Changes) > 0
	}
	if touched {
		next.Rev = rev
	}
	return next, nil
}

// higher returns the higher of the known finalized block and a reported one. A block without a hash counts as none.
func higher(known, reported chain.BlockRef) chain.BlockRef {
	if !reported.Hash.IsZero() && (known.Hash.IsZero() || reported.Number > known.Number) {
		return reported
	}
	return known
}

// write runs one fenced transaction that moves the offset row from where we know it to next, together with what work
// asks for.
func (p *Partition) write(ctx context.Context, next Offset,
	work func(context.Context, pgx.Tx) (*pgx.Batch, error)) error {
	ctx, cancel := p.db.Bounded(ctx)
	defer cancel()
	failpoint.Hit("pg.write.begin")
	tx, err := p.db.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("beginning a step of partition %d: %w", p.offset.Partition, err)
	}
	if err := p.step(ctx, tx, next, work); err != nil {
		// What was not committed is undone by the server, also if this does not reach it.
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return err
	}
	failpoint.Hit("pg.write.commit")
	if err := tx.Commit(ctx); err != nil {
		return p.resolve(ctx, next, fmt.Errorf("committing a step of partition %d: %w", p.offset.Partition, err))
	}
	failpoint.Hit("pg.write.committed")
	p.offset = next
	return nil
}

func (p *Partition) step(ctx context.Context, tx pgx.Tx, next Offset,
	work func(context.Context, pgx.Tx) (*pgx.Batch, error)) error {
	found, err := p.lock(ctx, tx)
	if err != nil {
		return err
	}
	if found != p.offset {
		return fmt.Errorf("partition %d stands at offset %d, block %d, not at offset %d, block %d as remembered: %w",
			found.Partition, found.Next, found.Tip.Number, p.offset.Next, p.offset.Tip.Number, errStale)
	}
	failpoint.Hit("pg.write.locked")
	batch, err := work(ctx, tx)
	if err != nil {
		return fmt.Errorf("preparing a step of partition %d: %w", p.offset.Partition, err)
	}
	batch.Queue(moveOffset.In(p.generation), next.arguments()...)
	batch.Queue(notifyChange.SQL(), "partition "+strconv.Itoa(next.Partition))
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("writing a step of partition %d: %w", p.offset.Partition, err)
	}
	failpoint.Hit("pg.write.written")
	return nil
}

var errStale = errors.New("the memory of this process is stale (refresh)")

// resolve finds out what became of a COMMIT that was not confirmed. Locking the row waits for the lost transaction to
// end one way or the other.
func (p *Partition) resolve(ctx context.Context, next Offset, lost error) error {
	before := p.offset
	switch err := p.Refresh(ctx); {
	case NotOwner(err):
		return err
	case err != nil:
		return fmt.Errorf("%w; whether it took effect is unknown: %w", lost, err)
	case p.offset == next:
		return nil
	case p.offset == before:
		return fmt.Errorf("%w; it did not take effect", lost)
	default:
		return fmt.Errorf("%w; partition %d stands at offset %d, which is neither before nor after the step", lost,
			next.Partition, p.offset.Next)
	}
}
