package scanner

import (
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/wire"
)

// correct takes a block that was published wrong, and everything above it, back from every partition. What follows is
// published as if it was new, under a higher attempt, and the block itself with its proven content. A finding that is
// out of date does nothing.
func (t *tenure) correct(ctx context.Context, f finding) error {
	ancestor, possible := t.correctable(f)
	if !possible {
		return nil
	}
	if err := t.publishFinal(ctx); err != nil { // before anything is taken back
		return err
	}
	t.attempt++
	t.collector.trust(f.proven)
	t.chain.Suspect(f.block.Hash, evm.PartLogs, f.reason)
	t.metrics.corrections.Inc()
	t.log.Error().Uint64("block", f.block.Number).Stringer("hash", f.block.Hash).Uint32("attempt", t.attempt).
		Str("reason", f.reason).
		Msg("a block was published wrong; correcting it and everything above it")
	return t.each(func(st *stream) error { return t.takeBackWrong(ctx, st, ancestor, f.reason) })
}

// correctable returns the block a correction goes back to. There is none if the block has been taken back meanwhile, or
// lies deeper than readers can undo.
func (t *tenure) correctable(f finding) (ancestor chain.BlockRef, possible bool) {
	for _, st := range t.streams {
		known, on := st.branch.at(f.block.Number)
		parent, below := st.branch.at(f.block.Number - 1)
		switch deep := f.block.Number < st.branch.oldest().Number; {
		case !deep && (!on || known.Hash != f.block.Hash || known.attempt != f.attempt):
			return chain.BlockRef{}, false
		case deep || !below || !st.branch.reaches(parent.BlockRef):
			t.metrics.tooDeep.Inc()
			t.log.Error().Uint64("block", f.block.Number).Stringer("hash", f.block.Hash).Str("reason", f.reason).
				Msg("a block was published wrong, and lies deeper than readers can undo: it stays unproven, and the " +
					"topic has to be written anew")
			return chain.BlockRef{}, false
		}
		ancestor = parent.BlockRef
	}
	return ancestor, true
}

// prove publishes, to every partition that holds it unverified, that a block is as it was published, however deep it
// lies by now. What cannot be taken back waits for that.
func (t *tenure) prove(ctx context.Context, f finding) error {
	d := f.doubt
	return t.each(func(st *stream) error {
		known, on := st.branch.at(d.block.Number)
		if deep := d.block.Number < st.branch.oldest().Number; deep { // nothing takes it back any more
			known, on = placed{BlockRef: d.block, attempt: d.attempt, verified: d.places[st.partition].verified}, true
		}
		if !on || known.Hash != d.block.Hash || known.attempt != d.attempt || known.verified {
			return nil
		}
		if err := t.control(ctx, st, wire.Proven{Block: d.block, Attempt: d.attempt}); err != nil {
			return fmt.Errorf("publishing that block %d is proven: %w", d.block.Number, err)
		}
		st.branch.prove(d.block, d.attempt)
		return nil
	})
}

// takeBackWrong writes a CORRECTION under the tenure's attempt to a partition.
func (t *tenure) takeBackWrong(ctx context.Context, st *stream, ancestor chain.BlockRef, reason string) error {
	correction := wire.Correction{Reorg: chain.Reorg{Ancestor: ancestor, OldTip: st.branch.tip()}, Attempt: t.attempt,
		Reason: reason}
	failpoint.Hit("scanner.correction.before")
	if err := t.control(ctx, st, correction); err != nil {
		return fmt.Errorf("publishing a correction from block %d on: %w", ancestor.Number+1, err)
	}
	failpoint.Hit("scanner.correction.after")
	t.doubts.forgetAbove(ancestor.Number)
	t.words.forgetAbove(ancestor.Number)
	return st.correct(ancestor, t.attempt)
}

// completeCorrection brings a correction that its writer did not finish to the partitions that lack it. Those that have
// it know the highest attempt, and by that what it goes back to; from there on all are published under this attempt.
func (t *tenure) completeCorrection(ctx context.Context) error {
	leading := t.streams[0]
	for _, st := range t.streams {
		if st.branch.attempt > leading.branch.attempt {
			leading = st
		}
	}
	t.attempt = leading.branch.attempt
	ancestor, known := leading.branch.corrected()
	if !known {
		return nil
	}
	return t.each(func(st *stream) error {
		if st.branch.attempt == t.attempt || !st.branch.has(ancestor) || st.branch.tip().Number == ancestor.Number {
			return nil
		}
		return t.takeBackWrong(ctx, st, ancestor, "completing a correction")
	})
}
