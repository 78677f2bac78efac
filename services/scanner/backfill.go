package scanner

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// backfill publishes what is final as ranges if a partition is far below it. Ranges are read side by side and written
// in order. What is left after it is followed block by block.
func (w *writer) backfill(ctx context.Context, head chain.BlockRef) error {
	if err := w.begin(ctx); err != nil || !w.farBelow(head.Number) {
		return err
	}
	final, err := w.chain.Finalized(ctx)
	if err != nil {
		w.log.Debug().Err(err).Msg("the node does not say what is final, so there is no history to fetch in ranges")
		return nil
	}
	if !w.farBelow(final.Number) {
		return nil
	}
	cuts, err := w.cuts(ctx, final.Number)
	if err != nil || len(cuts) == 0 {
		return err
	}
	defer w.metrics.backfillLeft.Set(0)
	w.log.Info().Uint64("from", cuts[0]+1).Uint64("to", final.Number).Msg("publishing history in ranges")
	return w.fill(ctx, cuts)
}

// farBelow reports whether so many blocks of history are missing that ranges are worth it.
func (w *writer) farBelow(number uint64) bool {
	return number >= w.lowestTip()+max(1, w.cfg.Scanner.Backfill.MaxRange/4)
}

// cuts are the blocks at which ranges have to end: the tips of the partitions below the final block, so that each range
// is wholly new or wholly held for each of them, and the final block itself. A tip that has left the chain is taken
// back first, unless it was final: then there are none.
func (w *writer) cuts(ctx context.Context, final uint64) ([]uint64, error) {
	if err := w.publishFinal(ctx); err != nil { // before anything is taken back
		return nil, retry.Stop(err)
	}
	cuts := []uint64{final}
	for _, st := range w.streams {
		if st.branch.tip().Number >= final {
			continue
		}
		base, err := w.newestOnChain(ctx, st)
		if err != nil {
			return nil, err
		}
		if base.Number < st.branch.tip().Number {
			if base.Number < w.final().Number {
				return nil, nil // no case for ranges: block by block it will be seen what the chain has left
			}
			if !st.branch.reaches(base) {
				return nil, w.tooDeep(st, chain.BlockRef{})
			}
			if err := w.rewind(ctx, st, base); err != nil {
				return nil, retry.Stop(err)
			}
		}
		cuts = append(cuts, base.Number)
	}
	slices.Sort(cuts)
	return slices.Compact(cuts), nil
}

// newestOnChain is a partition's newest block that the chain has not left.
func (w *writer) newestOnChain(ctx context.Context, st *stream) (chain.BlockRef, error) {
	for _, p := range slices.Backward(st.branch.blocks) {
		hash, err := w.chain.HashAt(ctx, p.Number)
		if err != nil {
			return chain.BlockRef{}, err
		}
		if hash == p.Hash {
			return p, nil
		}
	}
	return chain.BlockRef{}, retry.Stop(&otherChainError{topic: w.topic, partition: st.partition,
		oldest: st.branch.oldest(), whole: st.remembersAll()})
}

// fill reads the ranges between the cuts side by side, and writes them in order.
func (w *writer) fill(ctx context.Context, cuts []uint64) error {
	cfg := w.cfg.Scanner.Backfill
	width := newRangeWidth(cfg.MaxRange)
	group, ctx := errgroup.WithContext(ctx)
	results := make(chan chan stretch, cfg.Workers) // in the order of the chain
	group.Go(func() error {
		defer close(results)
		workers := make(chan struct{}, cfg.Workers)
		for i := range cuts[1:] {
			if err := w.dispatch(ctx, group, cuts[i], cuts[i+1], width, workers, results); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		for result := range results {
			select {
			case s := <-result:
				if err := w.publishStretch(ctx, s); err != nil {
					return err
				}
				at, last := s.refs[len(s.refs)-1].Number, cuts[len(cuts)-1]
				w.metrics.backfillLeft.Set(float64(last - at))
				w.status.set(fmt.Sprintf("publishing history: block %d of %d", at, last))
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return group.Wait()
}

// dispatch has the blocks above before up to last read, range by range, and puts the results into the queue in order.
func (w *writer) dispatch(ctx context.Context, group *errgroup.Group, before, last uint64, width *rangeWidth,
	workers chan struct{}, results chan<- chan stretch,
) error {
	for before < last {
		result := make(chan stretch, 1)
		if !send(ctx, workers, struct{}{}) || !send(ctx, results, result) {
			return context.Cause(ctx)
		}
		from, to := before+1, before+width.next(last-before)
		group.Go(func() error {
			defer func() { <-workers }()
			s, err := w.collector.stretch(ctx, from, to, w.status.fail)
			if err != nil {
				return err
			}
			width.learn(len(s.refs), s.bytes)
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
func (w *writer) publishStretch(ctx context.Context, s stretch) error {
	h := history{before: chain.BlockRef{Number: s.refs[0].Number - 1, Hash: s.refs[0].Parent}, refs: s.refs}
	for _, st := range w.streams {
		if tip := st.branch.tip(); tip.Number == h.before.Number && tip.Hash != h.before.Hash {
			return fmt.Errorf("block %d %s does not follow block %d %s, which it followed a moment ago",
				s.refs[0].Number, s.refs[0].Hash, tip.Number, tip.Hash)
		}
	}
	params, err := w.firstWords(ctx, s.refs[0])
	if err != nil {
		return err
	}
	if h.blocks, err = w.contents(ctx, s, params); err != nil {
		return err
	}
	if err := w.addVersions(ctx, h.blocks); err != nil {
		return err
	}
	batches, err := h.batches(len(w.streams), w.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	parts, err := splitAll(batches, h.last(), w.cfg.Kafka.MaxBytes, w.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	if err := w.each(func(st *stream) error { return w.writeRange(ctx, st, h, parts[st.partition]) }); err != nil {
		return err
	}
	for _, c := range h.blocks {
		w.words.reached(c)
	}
	w.metrics.block.Set(float64(h.last().Number))
	w.status.reached(h.last())
	return nil
}

// firstWords reads words of the DataStore at the topic's first block.
func (w *writer) firstWords(ctx context.Context, block chain.BlockRef) ([]wire.Param, error) {
	if block.Number != w.first {
		return nil, nil
	}
	return w.collector.store.params(ctx, w.cfg.Scanner.FirstWords, block)
}

// contents routes what was found in a range, in order. The words stand in its first block.
func (w *writer) contents(ctx context.Context, s stretch, words []wire.Param) ([]content, error) {
	blocks := s.blocks
	if first := s.refs[0]; len(words) > 0 && (len(blocks) == 0 || blocks[0].block.Hash != first.Hash) {
		blocks = slices.Insert(slices.Clone(blocks), 0, found{block: first})
	}
	contents := make([]content, len(blocks))
	for i, f := range blocks {
		var err error
		if contents[i], err = w.collector.complete(ctx, f, words); err != nil {
			return nil, err
		}
		words = nil
	}
	return contents, nil
}

// writeRange brings a range to a partition.
func (w *writer) writeRange(ctx context.Context, st *stream, h history, parts [][]wire.Record) error {
	if st.branch.tip().Number >= h.last().Number {
		return nil
	}
	failpoint.Hit("scanner.range.before")
	if err := w.produce(ctx, st, parts); err != nil {
		return fmt.Errorf("publishing blocks %d to %d: %w", h.before.Number+1, h.last().Number, err)
	}
	failpoint.Hit("scanner.range.after")
	return st.branch.extend(h.before, h.last())
}
