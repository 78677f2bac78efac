package scanner

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// backfill publishes what is final as ranges if a partition is far below it. Ranges are read side by side and written
// in order. What is left after it is followed block by block.
func (t *tenure) backfill(ctx context.Context, head chain.BlockRef) error {
	if err := t.begin(ctx); err != nil || !t.farBelow(head.Number) {
		return err
	}
	final, err := t.chain.Finalized(ctx)
	if err != nil {
		t.log.Debug().Err(err).Msg("the node does not say what is final, so there is no history to fetch in ranges")
		return nil
	}
	if !t.farBelow(final.Number) {
		return nil
	}
	cuts, err := t.cuts(ctx, final.Number)
	if err != nil || len(cuts) == 0 {
		return err
	}
	t.progress.begin(cuts[0], final.Number)
	defer t.progress.end()
	t.log.Info().Uint64("from", cuts[0]+1).Uint64("to", final.Number).Msg("publishing history in ranges")
	return t.fill(ctx, cuts)
}

// farBelow reports whether so many blocks of history are missing that ranges are worth it.
func (t *tenure) farBelow(number uint64) bool {
	return number >= t.lowestTip()+max(1, t.cfg.Scanner.Backfill.MaxRange/4)
}

// cuts are the blocks at which ranges have to end: the tips of the partitions below the final block, so that each range
// is wholly new or wholly held for each of them, and the final block itself. A tip that has left the chain is taken
// back first, unless it was final: then there are none.
func (t *tenure) cuts(ctx context.Context, final uint64) ([]uint64, error) {
	if err := t.publishFinal(ctx); err != nil { // before anything is taken back
		return nil, retry.Stop(err)
	}
	cuts := []uint64{final}
	for _, st := range t.streams {
		if st.branch.tip().Number >= final {
			continue
		}
		base, err := t.newestOnChain(ctx, st)
		if err != nil {
			return nil, err
		}
		if base.Number < st.branch.tip().Number {
			if base.Number < t.final().Number {
				return nil, nil // no case for ranges: block by block it will be seen what the chain has left
			}
			if !st.branch.reaches(base) {
				return nil, t.tooDeep(st, chain.BlockRef{})
			}
			if err := t.takeBack(ctx, st, base); err != nil {
				return nil, retry.Stop(err)
			}
		}
		cuts = append(cuts, base.Number)
	}
	slices.Sort(cuts)
	return slices.Compact(cuts), nil
}

// newestOnChain is a partition's newest block that the chain has not left.
func (t *tenure) newestOnChain(ctx context.Context, st *stream) (chain.BlockRef, error) {
	for _, p := range slices.Backward(st.branch.blocks) {
		hash, err := t.chain.HashAt(ctx, p.Number)
		if err != nil {
			return chain.BlockRef{}, err
		}
		if hash == p.Hash {
			return p, nil
		}
	}
	return chain.BlockRef{}, retry.Stop(&otherChainError{topic: t.topic, partition: st.partition,
		oldest: st.branch.oldest(), whole: st.remembersAll()})
}

// fill reads the ranges between the cuts side by side, and writes them in order.
func (t *tenure) fill(ctx context.Context, cuts []uint64) error {
	cfg := t.cfg.Scanner.Backfill
	budget := newBudget(cfg)
	group, ctx := errgroup.WithContext(ctx)
	results := make(chan chan stretch, cfg.Workers) // in the order of the chain
	group.Go(func() error {
		defer close(results)
		workers := make(chan struct{}, cfg.Workers)
		for i := range cuts[1:] {
			if err := t.dispatch(ctx, group, cuts[i], cuts[i+1], budget, workers, results); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		for result := range results {
			select {
			case s := <-result:
				if err := t.publishStretch(ctx, s); err != nil {
					return err
				}
				budget.give(len(s.refs), s.bytes)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return group.Wait()
}

// dispatch has the blocks above before up to last read, range by range, and puts the results into the queue in order.
func (t *tenure) dispatch(ctx context.Context, group *errgroup.Group, before, last uint64, budget *budget,
	workers chan struct{},
	results chan<- chan stretch,
) error {
	for before < last {
		blocks, err := budget.take(ctx, last-before)
		if err != nil {
			return err
		}
		result := make(chan stretch, 1)
		if !send(ctx, workers, struct{}{}) || !send(ctx, results, result) {
			return context.Cause(ctx)
		}
		from, to := before+1, before+blocks
		group.Go(func() error {
			defer func() { <-workers }()
			s, err := t.collector.stretch(ctx, from, to, t.status.fail)
			if err != nil {
				return err
			}
			budget.hold(len(s.refs), s.bytes)
			result <- s
			return nil
		})
		before = to
	}
	return nil
}

// send delivers a value unless ctx ends first.
func send[T any](ctx context.Context, to chan<- T, value T) bool {
	select {
	case to <- value:
		return true
	case <-ctx.Done():
		return false
	}
}

// publishStretch writes a range to every partition that lacks it, in as many batches as it takes.
func (t *tenure) publishStretch(ctx context.Context, s stretch) error {
	h := history{before: chain.BlockRef{Number: s.refs[0].Number - 1, Hash: s.refs[0].Parent}, refs: s.refs}
	for _, st := range t.streams {
		if tip := st.branch.tip(); tip.Number == h.before.Number && tip.Hash != h.before.Hash {
			return fmt.Errorf("block %d %s does not follow block %d %s, which it followed a moment ago",
				s.refs[0].Number, s.refs[0].Hash, tip.Number, tip.Hash)
		}
	}
	params, err := t.firstWords(ctx, s.refs[0])
	if err != nil {
		return err
	}
	if h.blocks, err = t.contents(ctx, s, params); err != nil {
		return err
	}
	if err := t.addVersions(ctx, h.blocks); err != nil {
		return err
	}
	pieces, err := h.pieces(len(t.streams), t.cfg.Kafka.MaxBytes, t.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	for _, p := range pieces {
		if err := t.each(func(st *stream) error { return t.writeRange(ctx, st, p) }); err != nil {
			return err
		}
	}
	for _, c := range h.blocks {
		t.words.reached(c)
	}
	t.metrics.block.Set(float64(h.last().Number))
	t.status.reached(h.last())
	t.progress.add(h.last().Number, len(s.refs), s.logs)
	t.status.set(t.progress.String())
	return nil
}

// firstWords reads the configured words of the DataStore at the topic's first block.
func (t *tenure) firstWords(ctx context.Context, block chain.BlockRef) ([]wire.Param, error) {
	if block.Number != t.first {
		return nil, nil
	}
	return t.collector.store.params(ctx, t.cfg.Scanner.Params, block)
}

// contents routes what was found in a range, in order. The words stand in its first block.
func (t *tenure) contents(ctx context.Context, s stretch, words []wire.Param) ([]content, error) {
	blocks := s.blocks
	if first := s.refs[0]; len(words) > 0 && (len(blocks) == 0 || blocks[0].block.Hash != first.Hash) {
		blocks = slices.Insert(slices.Clone(blocks), 0, found{block: first})
	}
	contents := make([]content, len(blocks))
	for i, f := range blocks {
		var err error
		if contents[i], err = t.collector.complete(ctx, f, words); err != nil {
			return nil, err
		}
		words = nil
	}
	return contents, nil
}

// writeRange brings a range to a partition.
func (t *tenure) writeRange(ctx context.Context, st *stream, p piece) error {
	if st.branch.tip().Number >= p.last().Number {
		return nil
	}
	failpoint.Hit("scanner.range.before")
	if err := t.produce(ctx, st, p.batches[st.partition]); err != nil {
		return fmt.Errorf("publishing blocks %d to %d: %w", p.before.Number+1, p.last().Number, err)
	}
	failpoint.Hit("scanner.range.after")
	return st.branch.extend(p.before, p.last())
}
