package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// stride bounds how many blocks are looked at before the first of them is published.
const stride = 64

// run publishes the chain until ctx ends, another scanner takes over, or something cannot be mended by trying again.
func (t *tenure) run(ctx context.Context, heads <-chan chain.BlockRef) error {
	group, ctx := errgroup.WithContext(ctx)
	from := t.streams[0].next
	group.Go(func() error { return t.watch(ctx, from) })
	group.Go(func() error { return t.follow(ctx, heads) })
	return group.Wait()
}

// follow publishes up to each head.
func (t *tenure) follow(ctx context.Context, heads <-chan chain.BlockRef) error {
	var head chain.BlockRef // none at first: the newest may have been announced before this tenure
	for {
		if err := t.reach(ctx, head); err != nil {
			return err
		}
		select {
		case head = <-heads:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// reach publishes up to a head, or up to the node's own where none is given or something went wrong. What the node does not answer is asked again
// without end.
func (t *tenure) reach(ctx context.Context, head chain.BlockRef) error {
	policy := retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second, OnRetry: func(attempt int, err error, _ time.Duration) {
		t.status.fail(err)
		if attempt == 1 {
			t.log.Warn().Err(err).Msg("cannot go on from the chain, trying again")
			return
		}
		t.log.Debug().Err(err).Int("attempt", attempt).Msg("still cannot go on from the chain")
	}}
	return retry.Do(ctx, policy, func(ctx context.Context) (err error) {
		target := head
		head = chain.BlockRef{}
		if target.Hash.IsZero() {
			if target, err = t.chain.Head(ctx); err != nil {
				return final(err)
			}
		}
		t.status.saw(target)
		if err := t.advance(ctx, target); err != nil {
			return final(err)
		}
		t.status.set("")
		return nil
	})
}

// final marks errors that do not go away by asking the chain again.
func final(err error) error {
	if evm.WrongChain(err) {
		return retry.Stop(err)
	}
	return err
}

// advance publishes up to a head, and what is final by now.
func (t *tenure) advance(ctx context.Context, head chain.BlockRef) error {
	for {
		path, err := t.path(ctx, head)
		if err != nil {
			return err
		}
		for _, block := range path {
			if behind := head.Number - min(head.Number, block.Number); behind > stride {
				t.status.set(fmt.Sprintf("catching up: block %d of %d", block.Number, head.Number))
			}
			if err := t.publish(ctx, block, block.Hash == head.Hash); err != nil {
				return err
			}
		}
		if len(path) == 0 || path[len(path)-1].Hash == head.Hash {
			return t.finalize(ctx)
		}
	}
}

// path returns the blocks that lead some partition to the head, oldest first: from where the partitions leave the chain, at most a stride beyond the
// newest block all of them have. It is empty if the head brings nothing new.
func (t *tenure) path(ctx context.Context, head chain.BlockRef) ([]evm.Block, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	block, err := t.target(ctx, head)
	if err != nil {
		return nil, err
	}
	var path []evm.Block
	for {
		missing, connected, err := t.compare(block.BlockRef)
		if err != nil {
			return nil, retry.Stop(err)
		}
		if missing {
			path = append(path, block)
		}
		if connected {
			slices.Reverse(path)
			return path, nil
		}
		if block, err = t.chain.Block(ctx, block.Parent); err != nil {
			return nil, err
		}
	}
}

// begin gives partitions that hold no block yet the parent of the topic's first block to stand on.
func (t *tenure) begin(ctx context.Context) error {
	if t.first == 0 && t.streams[0].branch.empty() {
		t.first = t.cfg.Scanner.StartBlock
	}
	for _, st := range t.streams {
		if !st.branch.empty() {
			continue
		}
		block, err := t.chain.BlockAt(ctx, t.first)
		if err != nil {
			return fmt.Errorf("the first block of the topic: %w", err)
		}
		st.branch = branch{blocks: []chain.BlockRef{{Number: block.Number - 1, Hash: block.Parent}}}
	}
	return nil
}

// target is the block to publish up to: the head, or one on its way that is not too far off.
func (t *tenure) target(ctx context.Context, head chain.BlockRef) (evm.Block, error) {
	if near := t.lowestTip() + stride; head.Number > near {
		return t.chain.BlockAt(ctx, near)
	}
	return t.chain.Block(ctx, head.Hash)
}

// compare tells whether a block is missing in some partition, and whether all partitions can go on from it or its parent.
func (t *tenure) compare(block chain.BlockRef) (missing, connected bool, err error) {
	connected = true
	for _, st := range t.streams {
		n, _ := st.branch.needs(block)
		missing = missing || n != held
		if n != lower {
			continue
		}
		connected = false
		if oldest := st.branch.oldest(); block.Number <= oldest.Number {
			return false, false, &otherChainError{t.topic, st.partition, oldest, st.whole}
		}
	}
	return missing, connected, nil
}

// otherChainError says that nothing a partition remembers is on the node's chain.
type otherChainError struct {
	topic     string
	partition int
	oldest    chain.BlockRef
	whole     bool
}

func (e *otherChainError) Error() string {
	if e.whole {
		return fmt.Sprintf("%s/%d was written for another chain: block %d %s is not on this one (use an empty topic, or the right chain)",
			e.topic, e.partition, e.oldest.Number, e.oldest.Hash)
	}
	return fmt.Sprintf("%s/%d: the chain has left block %d %s, deeper than its readers can undo (ask the node's operator; if it is so, rebuild the topic)",
		e.topic, e.partition, e.oldest.Number, e.oldest.Hash)
}

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
