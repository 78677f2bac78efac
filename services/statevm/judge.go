package statevm

import (
	"context"
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/pg"
)

// judge does with a step what the rule asks for, and with what a block's end carries beside: which block is final.
func (f *follower) judge(ctx context.Context, s step) error {
	if err := f.judgeOne(ctx, s); err != nil {
		return err
	}
	if final, known := f.finalBy(s.part); known {
		return f.judgeOne(ctx, step{next: s.next, mark: s.mark, epoch: s.epoch, finalized: &final})
	}
	return nil
}

// finalBy is the block that the end of another one calls final: its ancestor, of which this partition knows the hash if
// it is on the branch and kept.
func (f *follower) finalBy(s *blockPart) (final chain.BlockRef, known bool) {
	if s == nil || s.finalDepth == 0 || !f.branch.has(s.last) {
		return final, false
	}
	return f.branch.at(s.last.Number - uint64(s.finalDepth))
}

// judgeOne judges one statement: block parts wait for the next flush, and are committed before whatever takes blocks
// back.
func (f *follower) judgeOne(ctx context.Context, s step) error {
	if err := f.allowed(s); err != nil {
		return err
	}
	if s.commands() {
		if err := f.flushPending(ctx); err != nil {
			return err
		}
	}
	switch {
	case s.part != nil:
		return f.extend(s)
	case s.reorg != nil:
		return f.reorg(ctx, s)
	case s.halt != nil:
		return f.halt(ctx, s)
	case s.finalized != nil:
		return f.finalize(s)
	}
	return nil
}

// allowed lets nothing but a reorg that the operator has accepted pass while finality is broken.
func (f *follower) allowed(s step) error {
	at := f.partition.Offset()
	if at.Halted == "" || !s.moves() || s.halt != nil || s.reorg != nil && s.reorg.Accepted {
		return nil
	}
	return haltf("record at partition %d, offset %d comes while nobody may act (%s), and is not a reorg that the "+
		"operator has accepted",
		at.Partition, s.next-1, at.Halted)
}

func (f *follower) extend(s step) error {
	v, err := f.branch.part(s.part)
	if err == nil && v == apply {
		f.branch.extend(s.part)
		f.pending = append(f.pending, s)
	}
	return err
}

func (f *follower) reorg(ctx context.Context, s step) error {
	v, err := f.branch.reorg(*s.reorg)
	tip, _ := f.branch.tip()
	from, to, accepted := f.partition.Offset().Tip, s.reorg.Ancestor, s.reorg.Accepted
	lifts := accepted && (f.partition.Offset().Halted != "" || f.branch.isFinal(tip.Number+1))
	switch {
	case err != nil || v == skip && !lifts:
		return err
	case v == skip: // there is nothing to take back, but a halt or what was called final
		to = from
	}
	if err := f.partition.Undo(ctx, pg.Rewind{Next: s.next, Mark: s.mark, Epoch: s.epoch, Ancestor: to,
		Accepted: accepted}); err != nil {
		return fmt.Errorf("undoing blocks %d to %d: %w", to.Number+1, from.Number, err)
	}
	failpoint.Hit("statevm.undone")
	f.branch.rewind(to, accepted)
	f.log.Warn().Uint64("from", from.Number).Stringer("old_tip", from.Hash).Uint64("to", to.Number).
		Stringer("ancestor", to.Hash).Msg("blocks undone")
	f.stands()
	return f.reload(ctx)
}

// halt notes what the scanner has found out, for everybody; the partition goes on reading, for the reorg that the
// operator accepts.
func (f *follower) halt(ctx context.Context, s step) error {
	reason := storable(fmt.Sprintf("block %d %s: %s", s.halt.Block.Number, s.halt.Block.Hash, s.halt.Reason))
	failpoint.Hit("statevm.halt.before")
	if err := f.partition.Commit(ctx, pg.Commit{Next: s.next, Mark: s.mark, Epoch: s.epoch,
		Halted: reason}); err != nil {
		return err
	}
	failpoint.Hit("statevm.halt.after")
	f.log.Error().Str("reason", reason).Msg("the chain has broken a promise: nobody may act until the operator " +
		"accepts a reorg")
	f.stands()
	return nil
}

func (f *follower) finalize(s step) error {
	v, err := f.branch.finalize(*s.finalized)
	if err != nil || v == skip {
		return err
	}
	f.branch.raise(*s.finalized)
	f.pending = append(f.pending, s)
	return nil
}

// forbid notes in the database that nobody may act on the state, and why.
func (f *follower) forbid(ctx context.Context, why error) error {
	at := f.partition.Offset()
	if at.Halted != "" {
		return nil
	}
	failpoint.Hit("statevm.halt.before")
	if err := f.partition.Commit(ctx, pg.Commit{Next: at.Next, Mark: at.Mark, Epoch: at.Epoch,
		Halted: storable(why.Error())}); err != nil {
		return fmt.Errorf("noting for planner and sender that nobody may act: %w", err)
	}
	failpoint.Hit("statevm.halt.after")
	return nil
}

// storable is a text as the database can hold it.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "")
}
