package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// publish brings one block to every partition that lacks it. What is final is published before anything is taken back,
// and by a record of its own where it lies deeper than readers of the block's end remember.
func (t *tenure) publish(ctx context.Context, header evm.Header) error {
	block := header.BlockRef
	if _, is := t.forkOf(block); is || block.Number-t.called.Number > chain.UndoHorizon {
		if err := t.publishFinal(ctx); err != nil {
			return err
		}
	}
	if err := t.checkFinality(block); err != nil {
		return err
	}
	if err := t.checkDepth(block); err != nil {
		return err
	}
	collected, err := t.collector.collect(ctx, header, block.Number == t.first)
	if err != nil {
		return err
	}
	block = collected.block
	if ancestor, is := t.forkOf(block); is {
		t.words.forgetAbove(ancestor.Number) // before what was read on the other branch is published on this one
	}
	one := []content{collected}
	if err := t.addVersions(ctx, one); err != nil {
		return err
	}
	content := one[0]
	if t.isNew(block) {
		t.addInForce(&content)
		params, audits := t.words.next(block)
		content.params, content.audits = append(content.params, params...), audits
	}
	depths := t.depths(block)
	batches, err := content.batches(depths, t.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	parts, err := splitAll(batches, block, t.cfg.Kafka.MaxBytes, t.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	err = t.each(func(st *stream) error {
		if err := t.write(ctx, st, block, parts[st.partition]); err != nil {
			return err
		}
		st.finalizeBelow(block, depths[st.partition])
		return nil
	})
	if err != nil {
		return err
	}
	t.words.reached(content)
	for _, l := range content.logs {
		t.static.observe(wire.Log{Log: l.Log})
	}
	t.metrics.block.Set(float64(block.Number))
	t.status.reached(block)
	return nil
}

// isNew reports whether no partition holds a block: only then does what is published in it reach all of them.
func (t *tenure) isNew(block chain.BlockRef) bool {
	return !slices.ContainsFunc(t.streams, func(st *stream) bool {
		n, _ := st.branch.needs(block)
		return n == held
	})
}

// forkOf returns the lowest block above which a partition has to take something back before a block can follow, and
// whether there is one.
func (t *tenure) forkOf(block chain.BlockRef) (lowest chain.BlockRef, is bool) {
	for _, st := range t.streams {
		if n, ancestor := st.branch.needs(block); n == fork && (!is || ancestor.Number < lowest.Number) {
			lowest, is = ancestor, true
		}
	}
	return lowest, is
}

// each does something for all partitions at once, and waits for all even if one fails: what has begun to be written is
// better finished.
func (t *tenure) each(do func(*stream) error) error {
	failures := make([]error, len(t.streams))
	var wg sync.WaitGroup
	for i, st := range t.streams {
		wg.Go(func() { failures[i] = do(st) })
	}
	wg.Wait()
	return retry.Stop(errors.Join(failures...))
}

// write brings a block to a partition, after taking back what left the chain.
func (t *tenure) write(ctx context.Context, st *stream, block chain.BlockRef, parts [][]wire.Record) error {
	n, ancestor := st.branch.needs(block)
	switch n {
	case held:
		return nil
	case lower:
		return fmt.Errorf("block %d %s does not connect to %s/%d", block.Number, block.Hash, t.topic, st.partition)
	case fork:
		if err := t.takeBack(ctx, st, ancestor); err != nil {
			return err
		}
	case child:
	}
	failpoint.Hit("scanner.block.before")
	if err := t.produce(ctx, st, parts); err != nil {
		return fmt.Errorf("publishing block %d: %w", block.Number, err)
	}
	failpoint.Hit("scanner.block.after")
	return st.branch.push(block)
}

// produce writes the batches of a block or range one after the other. Nothing of it counts before the last is written.
func (t *tenure) produce(ctx context.Context, st *stream, parts [][]wire.Record) error {
	for _, batch := range parts {
		if _, err := t.producer.Produce(ctx, st.partition, batch); err != nil {
			return err
		}
	}
	return nil
}

// checkDepth refuses a block that can follow only where a partition takes back more than its readers can undo.
func (t *tenure) checkDepth(block chain.BlockRef) error {
	for _, st := range t.streams {
		if n, ancestor := st.branch.needs(block); n == fork && !st.branch.reaches(ancestor) {
			return t.tooDeep(st, block)
		}
	}
	return nil
}

// tooDeep says that the chain has left a partition's oldest block that its readers could go back to, as a block of it
// shows; the zero block where none was served.
func (t *tenure) tooDeep(st *stream, block chain.BlockRef) error {
	oldest, _ := st.branch.at(st.branch.tip().Number - chain.UndoHorizon)
	return retry.Stop(&otherChainError{topic: t.topic, partition: st.partition, oldest: oldest, block: block})
}

// takeBack writes a REORG to a partition, which must reach the ancestor.
func (t *tenure) takeBack(ctx context.Context, st *stream, ancestor chain.BlockRef) error {
	reorg := chain.Reorg{Ancestor: ancestor, OldTip: st.branch.tip()}
	failpoint.Hit("scanner.reorg.before")
	if err := t.control(ctx, st, wire.Reorg{Reorg: reorg}); err != nil {
		return fmt.Errorf("publishing the reorg from block %d to %d: %w", reorg.OldTip.Number, ancestor.Number, err)
	}
	failpoint.Hit("scanner.reorg.after")
	st.branch.cut(ancestor)
	t.noteReorg(st, reorg)
	return nil
}

// noteReorg notes a reorg, of all partitions once.
func (t *tenure) noteReorg(st *stream, reorg chain.Reorg) {
	t.words.forgetAbove(reorg.Ancestor.Number)
	if st.partition != 0 {
		return
	}
	t.static.look()
	t.log.Warn().Uint64("ancestor", reorg.Ancestor.Number).Uint64("old_tip", reorg.OldTip.Number).
		Stringer("old_hash", reorg.OldTip.Hash).Msg("reorg")
}

// control writes a record that stands alone between batches.
func (t *tenure) control(ctx context.Context, st *stream, m wire.Message) error {
	record, err := t.encode(m)
	if err != nil {
		return err
	}
	_, err = t.producer.Produce(ctx, st.partition, []wire.Record{record})
	return err
}
