package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// publish brings one block to every partition that lacks it. What is final is published before anything is taken back,
// and by a record of its own where it lies deeper than readers of the block's end remember.
func (w *writer) publish(ctx context.Context, header evm.Header) error {
	block := header.BlockRef
	if _, is := w.forkOf(block); is || block.Number-w.called.Number > chain.UndoHorizon {
		if err := w.publishFinal(ctx); err != nil {
			return err
		}
	}
	if err := w.checkFinality(block); err != nil {
		return err
	}
	if err := w.checkDepth(block); err != nil {
		return err
	}
	collected, err := w.collector.collect(ctx, header, block.Number == w.first)
	if err != nil {
		return err
	}
	block = collected.block
	if ancestor, is := w.forkOf(block); is {
		w.words.forgetAbove(ancestor.Number) // before what was read on the other branch is published on this one
	}
	one := []content{collected}
	if err := w.addVersions(ctx, one); err != nil {
		return err
	}
	content := one[0]
	if w.isNew(block) {
		w.addInForce(&content)
		params, audits := w.words.next(block)
		content.params, content.audits = append(content.params, params...), audits
	}
	depths := w.depths(block)
	batches, err := content.batches(depths, w.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	parts, err := splitAll(batches, block, w.cfg.Kafka.MaxBytes, w.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	err = w.each(func(st *stream) error {
		if err := w.write(ctx, st, block, parts[st.partition]); err != nil {
			return err
		}
		st.finalizeBelow(block, depths[st.partition])
		return nil
	})
	if err != nil {
		return err
	}
	w.words.reached(content)
	for _, l := range content.logs {
		w.static.observe(wire.Log{Log: l.Log})
	}
	w.metrics.block.Set(float64(block.Number))
	w.status.reached(block)
	return nil
}

// isNew reports whether no partition holds a block: only then does what is published in it reach all of them.
func (w *writer) isNew(block chain.BlockRef) bool {
	return !slices.ContainsFunc(w.streams, func(st *stream) bool {
		n, _ := st.branch.needs(block)
		return n == held
	})
}

// forkOf returns the lowest block above which a partition has to take something back before a block can follow, and
// whether there is one.
func (w *writer) forkOf(block chain.BlockRef) (lowest chain.BlockRef, is bool) {
	for _, st := range w.streams {
		if n, ancestor := st.branch.needs(block); n == fork && (!is || ancestor.Number < lowest.Number) {
			lowest, is = ancestor, true
		}
	}
	return lowest, is
}

// each does something for all partitions at once, and waits for all even if one fails: what has begun to be written is
// better finished.
func (w *writer) each(do func(*stream) error) error {
	failures := make([]error, len(w.streams))
	var wg sync.WaitGroup
	for i, st := range w.streams {
		wg.Go(func() { failures[i] = do(st) })
	}
	wg.Wait()
	return retry.Stop(errors.Join(failures...))
}

// write brings a block to a partition, after taking back what left the chain.
func (w *writer) write(ctx context.Context, st *stream, block chain.BlockRef, parts [][]wire.Record) error {
	n, ancestor := st.branch.needs(block)
	switch n {
	case held:
		return nil
	case lower:
		return fmt.Errorf("block %d %s does not connect to %s/%d", block.Number, block.Hash, w.topic, st.partition)
	case fork:
		if err := w.rewind(ctx, st, ancestor); err != nil {
			return err
		}
	case child:
	}
	failpoint.Hit("scanner.block.before")
	if err := w.produce(ctx, st, parts); err != nil {
		return fmt.Errorf("publishing block %d: %w", block.Number, err)
	}
	failpoint.Hit("scanner.block.after")
	return st.branch.push(block)
}

// produce writes the batches of a block or range one after the other. Nothing of it counts before the last is written.
func (w *writer) produce(ctx context.Context, st *stream, parts [][]wire.Record) error {
	for _, batch := range parts {
		if _, err := w.producer.Produce(ctx, st.partition, batch); err != nil {
			return err
		}
	}
	return nil
}

// checkDepth refuses a block that can follow only where a partition takes back more than its readers can undo.
func (w *writer) checkDepth(block chain.BlockRef) error {
	for _, st := range w.streams {
		if n, ancestor := st.branch.needs(block); n == fork && !st.branch.reaches(ancestor) {
			return w.tooDeep(st, block)
		}
	}
	return nil
}

// tooDeep says that the chain has left a partition's oldest block that its readers could go back to, as a block of it
// shows; the zero block where none was served.
func (w *writer) tooDeep(st *stream, block chain.BlockRef) error {
	oldest, _ := st.branch.at(st.branch.tip().Number - chain.UndoHorizon)
	return retry.Stop(&otherChainError{topic: w.topic, partition: st.partition, oldest: oldest, block: block})
}

// rewind writes a REORG to a partition, which must reach the ancestor.
func (w *writer) rewind(ctx context.Context, st *stream, ancestor chain.BlockRef) error {
	reorg := chain.Reorg{Ancestor: ancestor, OldTip: st.branch.tip()}
	failpoint.Hit("scanner.reorg.before")
	if err := w.control(ctx, st, wire.Reorg{Reorg: reorg}); err != nil {
		return fmt.Errorf("publishing the reorg from block %d to %d: %w", reorg.OldTip.Number, ancestor.Number, err)
	}
	failpoint.Hit("scanner.reorg.after")
	st.branch.cut(ancestor)
	w.noteReorg(st, reorg)
	return nil
}

// noteReorg notes a reorg, of all partitions once.
func (w *writer) noteReorg(st *stream, reorg chain.Reorg) {
	w.words.forgetAbove(reorg.Ancestor.Number)
	if st.partition != 0 {
		return
	}
	w.static.look()
	w.log.Warn().Uint64("ancestor", reorg.Ancestor.Number).Uint64("old_tip", reorg.OldTip.Number).
		Stringer("old_hash", reorg.OldTip.Hash).Msg("reorg")
}

// control writes a record that stands alone between batches.
func (w *writer) control(ctx context.Context, st *stream, m wire.Message) error {
	record, err := w.encode(m)
	if err != nil {
		return err
	}
	_, err = w.producer.Produce(ctx, st.partition, []wire.Record{record})
	return err
}
