package scanner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// finalPause is how long a partition waits for a block whose end names what is final, before it is published by a
// record of its own: two blocks of BNB Smart Chain.
const finalPause = time.Second

// finalize asks for the newest block that two hosts call final. The end of the next block brings it to every partition.
func (w *writer) finalize(ctx context.Context) {
	final, err := w.chain.Finalized(ctx)
	w.status.decided(err)
	if err != nil {
		w.log.Debug().Err(err).Msg("no new block is called final")
		return
	}
	w.status.final(final)
	w.called = final
}

// lacksFinal reports whether a partition holds the block that was called final last, and was not given that it is
// final, nor of a newer one: nodes forget (PIPE-2).
func (w *writer) lacksFinal(st *stream) bool {
	return w.called.Number > st.finalized.Number && st.branch.has(w.called)
}

// depths is how far below a block lies what its end calls final, by partition; 0 where it names nothing: the partition
// has it already, or something is taken back first.
func (w *writer) depths(block chain.BlockRef) []uint32 {
	depths := make([]uint32, len(w.streams))
	for i, st := range w.streams {
		depth := block.Number - w.called.Number
		if n, _ := st.branch.needs(block); n == child && w.lacksFinal(st) && depth <= chain.UndoHorizon {
			depths[i] = uint32(depth)
		}
	}
	return depths
}

// publishFinal writes the final block, in a record of its own, to every partition that does not have it yet: where no
// block comes that could carry it, and before blocks are taken back.
func (w *writer) publishFinal(ctx context.Context) error {
	return w.each(func(st *stream) error {
		final := w.called
		if !w.lacksFinal(st) {
			return nil
		}
		failpoint.Hit("scanner.finalized.before")
		if err := w.control(ctx, st, wire.Finalized{Block: final}); err != nil {
			return fmt.Errorf("publishing that block %d is final: %w", final.Number, err)
		}
		failpoint.Hit("scanner.finalized.after")
		st.finalize(final)
		return nil
	})
}

// violation means that the chain has left a block it had called final.
type violation struct {
	final    chain.BlockRef // the newest block that was said to be final
	ancestor chain.BlockRef // the newest block of ours that is on the chain still
	block    chain.BlockRef // the block of the chain that follows it
}

func (v *violation) Error() string {
	return fmt.Sprintf("the chain has left block %d %s, which it had called final: it goes on from block %d %s. "+
		"Nothing is published until the operator "+
		"accepts that (find out from other nodes whether it is so; if it is, set scanner.accept_reorg_to = %q and "+
		"restart the scanner)",
		v.final.Number, v.final.Hash, v.ancestor.Number, v.ancestor.Hash, v.ancestor.Hash)
}

// checkFinality returns a violation if a block of the chain can follow only where something final is taken back. The
// final block is our own maximum over all partitions, since a node's word may go backwards.
func (w *writer) checkFinality(block chain.BlockRef) error {
	final := w.final()
	for _, st := range w.streams {
		if n, ancestor := st.branch.needs(block); n == fork && ancestor.Number < final.Number {
			return retry.Stop(&violation{final, ancestor, block})
		}
	}
	return nil
}

// final is the newest block any partition calls final.
func (w *writer) final() (final chain.BlockRef) {
	for _, st := range w.streams {
		if st.finalized.Number > final.Number {
			final = st.finalized
		}
	}
	return final
}

// confirmLeft returns why it is not to be believed yet that the chain has left a block, as a block that one endpoint
// served shows: it takes two hosts that have another one in its place, where there are two. If another endpoint still
// has it where it was, the one that served the other branch is at fault, or ahead of the rest: it is not asked for a
// while. What says what the block is to the topic.
func (w *writer) confirmLeft(ctx context.Context, left, served chain.BlockRef, what string) error {
	settled, err := w.chain.SettledHash(ctx, left.Number)
	if err == nil && settled != left.Hash {
		return nil
	}
	source := w.chain.ServedBy(served.Hash)
	if source != "" {
		other, failed := w.chain.Excluding(source).BlockAt(ctx, left.Number)
		if failed == nil && other.Hash == left.Hash {
			reason := fmt.Sprintf("its chain lacks block %d %s, %s; %s has it", left.Number, left.Hash, what,
				other.Source)
			w.chain.Suspect(served.Hash, reason)
			return fmt.Errorf("endpoint %s: %s", source, reason)
		}
	}
	if err == nil {
		err = errors.New("it is still there")
	}
	return fmt.Errorf("waiting for a second host to say whether the chain has left block %d %s, %s, as endpoint %q "+
		"has it: %w", left.Number, left.Hash, what, source, err)
}

// halt publishes to every partition that nobody may act on the state any more.
func (w *writer) halt(ctx context.Context, h wire.Halt) error {
	w.metrics.halted.Set(1)
	w.log.Error().Uint64("block", h.Block.Number).Stringer("hash", h.Block.Hash).Str("reason", h.Reason).Msg("halted")
	return w.each(func(st *stream) error {
		if st.halted != nil {
			return nil
		}
		failpoint.Hit("scanner.halt.before")
		if err := w.control(ctx, st, h); err != nil {
			return fmt.Errorf("publishing the halt: %w", err)
		}
		failpoint.Hit("scanner.halt.after")
		st.halted = &h
		return nil
	})
}

// halted returns the topic's HALT, from whichever partition has one: a scanner may have ended before it reached
// all.
func (w *writer) halted() (wire.Halt, bool) {
	for _, st := range w.streams {
		if st.halted != nil {
			return *st.halted, true
		}
	}
	return wire.Halt{}, false
}

// idle is what a scanner does where only the operator can help: nothing, and it reports why.
func (w *writer) idle(ctx context.Context, heads <-chan chain.BlockRef, reason error) error {
	w.status.fail(reason)
	for {
		select {
		case head := <-heads:
			w.status.saw(head)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// accept takes everything above a block back, with the operator's word for it, from every partition that has halted or
// calls more final than that block. It does nothing where that has been done before.
func (w *writer) accept(ctx context.Context, ancestor chain.BlockRef) error {
	highest := w.highestTip()
	err := w.each(func(st *stream) error {
		if st.halted == nil && st.finalized.Number <= ancestor.Number {
			return nil
		}
		reorg := chain.Reorg{Ancestor: ancestor, OldTip: st.branch.tip()}
		// this partition never got further; readers know a reorg that only lifts a HALT by an old tip they lack
		if reorg.OldTip.Hash == ancestor.Hash {
			reorg.OldTip = highest
		}
		failpoint.Hit("scanner.accept.before")
		if err := w.control(ctx, st, wire.Reorg{Reorg: reorg, Accepted: true}); err != nil {
			return fmt.Errorf("publishing the accepted reorg to block %d: %w", ancestor.Number, err)
		}
		failpoint.Hit("scanner.accept.after")
		st.branch.cut(ancestor)
		st.finalized, st.halted = ancestor, nil
		w.noteReorg(st, reorg)
		return nil
	})
	if err == nil {
		w.metrics.halted.Set(0)
		w.log.Warn().Uint64("ancestor", ancestor.Number).Stringer("hash", ancestor.Hash).
			Msg("a reorg below the finalized block was accepted; remove scanner.accept_reorg_to")
	}
	return err
}

// accepted finds the block the operator has named, if any: it must be on the chain and in every partition.
func (w *writer) accepted(ctx context.Context) (ancestor chain.BlockRef, named bool, err error) {
	hash := w.cfg.Scanner.AcceptReorgTo
	if hash.IsZero() {
		return chain.BlockRef{}, false, nil
	}
	for _, st := range w.streams {
		block, on := st.branch.find(hash)
		if on && !st.branch.reaches(block) {
			return chain.BlockRef{}, false,
				retry.Stop(fmt.Errorf("scanner.accept_reorg_to: block %d lies more than %d blocks below block %d, the "+
					"newest of %s/%d, and no reader can go back to it (rebuild the topic)", block.Number,
					chain.UndoHorizon, st.branch.tip().Number, w.topic, st.partition))
		}
		if !on {
			return chain.BlockRef{}, false,
				retry.Stop(fmt.Errorf("scanner.accept_reorg_to: %s/%d holds no block %s that could be gone back to "+
					"(name the block the HALT names, or one below it)", w.topic, st.partition, hash))
		}
		ancestor = block
	}
	if w.highestTip().Hash == hash {
		return chain.BlockRef{}, false,
			retry.Stop(fmt.Errorf("scanner.accept_reorg_to: %s is the newest block there is (name an older one)", hash))
	}
	at, err := w.chain.HashAt(ctx, ancestor.Number)
	if err != nil {
		return chain.BlockRef{}, false, err
	}
	if at != hash {
		return chain.BlockRef{}, false,
			retry.Stop(fmt.Errorf("scanner.accept_reorg_to: the chain has left block %d %s too (name an older one)",
				ancestor.Number, hash))
	}
	return ancestor, true, nil
}

// liftHalt accepts the operator's word on a topic that has halted, if it is given.
func (w *writer) liftHalt(ctx context.Context, h wire.Halt) (lifted bool, err error) {
	policy := retry.Policy{OnRetry: func(_ int, err error, _ time.Duration) { w.status.fail(err) }}
	err = retry.Do(ctx, policy, func(ctx context.Context) error {
		ancestor, named, err := w.accepted(ctx)
		if err != nil || !named {
			return err
		}
		lifted = true
		return w.accept(ctx, ancestor)
	})
	if err == nil && !lifted {
		err = w.halt(ctx, h) // in every partition, wherever the one that wrote it came to its end
	}
	return lifted, err
}

// highestTip is the newest block of any partition.
func (w *writer) highestTip() (highest chain.BlockRef) {
	for _, st := range w.streams {
		if tip := st.branch.tip(); tip.Number >= highest.Number {
			highest = tip
		}
	}
	return highest
}

// lift accepts the operator's word for a violation, if it is given: the named block must be low enough.
func (w *writer) lift(ctx context.Context, v *violation) (lifted bool, err error) {
	ancestor, named, err := w.accepted(ctx)
	if err != nil || !named || ancestor.Number > v.ancestor.Number {
		return false, err
	}
	return true, w.accept(ctx, ancestor)
}
