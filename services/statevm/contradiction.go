package statevm

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

// contradiction is a block that cannot be applied: it cannot be decoded, or its events do not fit the rows. Among
// proven blocks that is the end of what this build understands, and the partition halts. While it, or a block below it,
// is published without proof, the record that takes the cause back may stand a few records further on: the partition
// reads on without applying anything, until then.
type contradiction struct {
	at       pg.Block
	cause    error
	unproven pg.Block // the oldest block that may be the cause
	// proven are the blocks that have been proven since the rows were committed last: they are stored when the wait is
	// over, because the offset goes beyond their records then.
	proven []pg.Block
	// halt is what was said meanwhile, until an accepted reorg lifts it. It is not stored before the wait ends: beside
	// an offset before the contradiction it would keep a successor from reading on to that reorg. Partitions that do
	// not wait store it at once; where all wait, the watermark stands still, and the sender's gate is closed by that.
	halt *wire.Halt
}

func (c *contradiction) Error() string { return c.cause.Error() }

func (c *contradiction) Unwrap() error { return c.cause }

func (c *contradiction) String() string {
	return fmt.Sprintf("waiting for the proof or the correction of block %d %s, which was published without proof: %v",
		c.unproven.Number, c.unproven.Hash, c.cause)
}

// waiting reports whether the partition is stuck at a contradiction.
func (f *follower) waiting() bool { return f.stuck != nil }

// wait begins to wait where a step failed on what nobody has proven. It returns what cannot be waited out.
func (f *follower) wait(ctx context.Context, err error) error {
	c, is := errors.AsType[*contradiction](err)
	if !is {
		return err
	}
	doubted, provisional := f.branch.unproven(c.at.Number)
	if !provisional {
		return c.cause
	}
	c.unproven, f.stuck = doubted, c
	f.log.Warn().Err(c.cause).Uint64("block", c.at.Number).Uint64("unproven", doubted.Number).
		Stringer("hash", doubted.Hash).
		Msg("a block contradicts the rows; waiting for the proof or the correction of what was published without proof")
	f.stands()
	return f.reload(ctx) // what the block did before it failed is forgotten
}

// await judges a step while the partition is stuck: the branch grows and shrinks with what is read, and the rows stay
// as they are. It ends with the block being taken back, or with an error once everything below it is proven, or can no
// longer be taken back.
func (f *follower) await(ctx context.Context, s step) error {
	switch {
	case s.share != nil:
		if v, err := f.branch.share(s.share); err != nil {
			return err
		} else if v == apply {
			f.branch.extend(s.share)
		}
	case s.finalized != nil:
		if v, err := f.branch.finalize(*s.finalized); err != nil {
			return err
		} else if v == apply {
			f.branch.raise(*s.finalized)
		}
	case s.proven != nil:
		f.branch.prove(*s.proven)
		f.stuck.proven = append(f.stuck.proven, s.proof())
	case s.halt != nil:
		f.stuck.halt = s.halt
	case s.reorg != nil:
		return f.awaitReorg(ctx, s)
	case s.correction != nil:
		if v, err := f.branch.correction(*s.correction); err != nil || v == skip {
			return err
		}
		return f.takeBack(ctx, s, s.correction.Ancestor, false)
	}
	doubted, provisional := f.branch.unproven(f.stuck.at.Number)
	if !provisional {
		return f.stuck.cause
	}
	if doubted.Hash != f.stuck.unproven.Hash {
		f.stuck.unproven = doubted
		f.stands()
	}
	return nil
}

func (f *follower) awaitReorg(ctx context.Context, s step) error {
	v, err := f.branch.reorg(*s.reorg)
	if err != nil {
		return err
	}
	if s.reorg.Accepted {
		f.stuck.halt = nil
	}
	if v == skip {
		return nil
	}
	return f.takeBack(ctx, s, s.reorg.Ancestor, s.reorg.Accepted)
}

// takeBack takes blocks back while the partition is stuck. If the one that it is stuck at goes with them, the rows
// follow, and work goes on.
func (f *follower) takeBack(ctx context.Context, s step, to chain.BlockRef, accepted bool) error {
	if to.Number >= f.stuck.at.Number {
		f.branch.rewind(to, accepted)
		return nil
	}
	halt, proven := f.stuck.halt, f.stuck.proven
	f.stuck = nil
	f.log.Info().Uint64("block", to.Number).Stringer("hash", to.Hash).Msg("what contradicted the rows is taken " +
		"back; going on")
	back := pg.Rewind{Ancestor: to, Accepted: accepted, Proven: proven}
	if err := f.leave(ctx, s, back); err != nil || halt == nil {
		return err
	}
	return f.halt(ctx, step{next: s.next, mark: s.mark, epoch: s.epoch, halt: halt})
}

// leave brings the rows back to a block at or below their tip, and the offset behind the record that asked for it.
// Before the very first block there is nothing to bring back.
func (f *follower) leave(ctx context.Context, s step, back pg.Rewind) error {
	if !f.partition.Offset().Tip.Hash.IsZero() {
		return f.undo(ctx, s, back)
	}
	f.branch.rewind(back.Ancestor, back.Accepted)
	if err := f.partition.Commit(ctx, pg.Commit{Next: s.next, Mark: s.mark, Epoch: s.epoch}); err != nil {
		return err
	}
	f.noteCommit()
	return f.reload(ctx)
}
