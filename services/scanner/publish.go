package scanner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// publish brings one block to every partition that lacks it.
func (t *tenure) publish(ctx context.Context, block evm.Block, isHead bool) error {
	began := time.Now()
	need, _ := t.streams[0].branch.needs(block.BlockRef)
	if need == fork {
		t.words.forget() // the REORG ahead of this block takes them back
	}
	readWords := block.Number == t.first || isHead && began.After(t.words.due)
	content, err := t.collector.collect(ctx, block, readWords)
	if err != nil {
		return err
	}
	content.params = t.words.changed(content.params)
	batches, err := content.batches(len(t.streams), t.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	if err := t.each(func(st *stream) error { return t.write(ctx, st, block.BlockRef, batches[st.partition]) }); err != nil {
		return err
	}
	if readWords && need != held { // words travel with the batch of partition 0
		t.words.published(content.params, t.nextReading(block.Number == t.first && !isHead))
	}
	t.metrics.published(content, time.Since(began))
	return nil
}

// nextReading is when the words of the DataStore are read again: after an interval, or at the head if it has not been reached yet.
func (t *tenure) nextReading(behind bool) time.Time {
	if behind {
		return time.Time{}
	}
	return time.Now().Add(t.cfg.Scanner.ParamInterval)
}

// each does something for all partitions at once, and waits for all even if one fails: what has begun to be written is better finished.
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
func (t *tenure) write(ctx context.Context, st *stream, block chain.BlockRef, batch []wire.Record) error {
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
	if _, err := t.producer.Produce(ctx, st.partition, batch); err != nil {
		return fmt.Errorf("publishing block %d: %w", block.Number, err)
	}
	return st.branch.push(block)
}

// takeBack writes a REORG to a partition.
func (t *tenure) takeBack(ctx context.Context, st *stream, ancestor chain.BlockRef) error {
	reorg := chain.Reorg{Ancestor: ancestor, OldTip: st.branch.tip()}
	record, err := t.encode(wire.Reorg{Reorg: reorg})
	if err != nil {
		return err
	}
	if _, err := t.producer.Produce(ctx, st.partition, []wire.Record{record}); err != nil {
		return fmt.Errorf("publishing the reorg from block %d to %d: %w", reorg.OldTip.Number, ancestor.Number, err)
	}
	st.branch.cut(ancestor)
	if st.partition == 0 {
		t.metrics.reorgs.Observe(float64(reorg.OldTip.Number - ancestor.Number))
		t.log.Warn().Uint64("ancestor", ancestor.Number).Uint64("old_tip", reorg.OldTip.Number).Stringer("old_hash", reorg.OldTip.Hash).Msg("reorg")
	}
	if ancestor.Number < st.finalized {
		t.log.Error().Int("partition", st.partition).Uint64("ancestor", ancestor.Number).Uint64("finalized", st.finalized).
			Msg("the chain has left a finalized block: readers will stop and ask for the operator")
	}
	return nil
}

// finalize tells every partition that holds it of the newest final block, unless it has been told of a newer one: nodes forget (PIPE-2).
func (t *tenure) finalize(ctx context.Context) error {
	final, err := t.chain.Finalized(ctx)
	if err != nil {
		t.log.Debug().Err(err).Msg("the node does not say what is final")
		return nil
	}
	record, err := t.encode(wire.Finalized{Block: final})
	if err != nil {
		return err
	}
	t.metrics.finalized.Set(float64(final.Number))
	return t.each(func(st *stream) error {
		if final.Number <= st.finalized || !st.branch.has(final) {
			return nil
		}
		if _, err := t.producer.Produce(ctx, st.partition, []wire.Record{record}); err != nil {
			return fmt.Errorf("publishing that block %d is final: %w", final.Number, err)
		}
		st.finalized = final.Number
		return nil
	})
}
