package scanner

import (
	"context"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
)

// stride bounds how many blocks are looked at before the first of them is published.
const stride = 64

// path returns the blocks that lead some partition to the head, oldest first: from where the partitions leave the
// chain, at most a stride beyond the newest block all of them have. It is empty if the head brings nothing new.
func (w *writer) path(ctx context.Context, head chain.BlockRef) ([]evm.Header, error) {
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	block, err := w.target(ctx, head)
	if err != nil {
		return nil, err
	}
	var path []evm.Header
	for {
		missing, connected, err := w.compare(block.BlockRef)
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
		if block, err = w.chain.Header(ctx, block.Parent); err != nil {
			return nil, err
		}
	}
}

// begin gives partitions that hold no block yet the parent of the topic's first block to stand on.
func (w *writer) begin(ctx context.Context) error {
	if w.first == 0 && w.streams[0].branch.empty() {
		w.first = w.cfg.Scanner.StartBlock
	}
	for _, st := range w.streams {
		if !st.branch.empty() {
			continue
		}
		block, err := w.chain.HeaderAt(ctx, w.first)
		if err != nil {
			return fmt.Errorf("the first block of the topic: %w", err)
		}
		st.branch = branch{blocks: []chain.BlockRef{{Number: block.Number - 1, Hash: block.Parent}}}
	}
	return nil
}

// target is the block to publish up to: the head, or one on its way that is not too far off. An announced header will
// do where the block is to be read anyway: it may lack its milliseconds.
func (w *writer) target(ctx context.Context, head chain.BlockRef) (evm.Header, error) {
	if near := w.lowestTip() + stride; head.Number > near {
		return w.chain.HeaderAt(ctx, near)
	}
	if header, known := w.chain.Announced(head.Hash); known && w.collector.concerns(header) {
		return header, nil
	}
	return w.chain.Header(ctx, head.Hash)
}

// compare reports whether a block is missing in some partition, and whether all partitions can go on from it or its
// parent.
func (w *writer) compare(block chain.BlockRef) (missing, connected bool, err error) {
	connected = true
	for _, st := range w.streams {
		n, _ := st.branch.needs(block)
		missing = missing || n != held
		if n != lower {
			continue
		}
		connected = false
		if oldest := st.branch.oldest(); block.Number <= oldest.Number {
			return false, false, &otherChainError{w.topic, st.partition, oldest, block, st.remembersAll()}
		}
	}
	return missing, connected, nil
}

// otherChainError reports that the chain, as one endpoint serves it, has left all of a partition that readers could go
// back to.
type otherChainError struct {
	topic     string
	partition int
	oldest    chain.BlockRef // of what they could go back to
	block     chain.BlockRef // of the chain, that cannot follow; zero where it was not asked for by its hash
	whole     bool
}

func (e *otherChainError) Error() string {
	if e.whole {
		return fmt.Sprintf("%s/%d was written for another chain: block %d %s is not on this one (use an empty "+
			"topic, or the right chain; a demo begins anew with docker compose down and up)",
			e.topic, e.partition, e.oldest.Number, e.oldest.Hash)
	}
	return fmt.Sprintf("%s/%d: the chain has left block %d %s, deeper than its readers can undo (ask the node's "+
		"operator; if it is so, rebuild the topic)",
		e.topic, e.partition, e.oldest.Number, e.oldest.Hash)
}
