package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// backfill publishes what is final as ranges if a partition is far below it. Ranges are read side by side and written
// in order. What is left after it is followed block by block.
func (t *tenure) backfill(ctx context.Context, head chain.BlockRef) error {
	if err := t.begin(ctx); err != nil || !t.farBelow(head.Number) {
		return err
	}
	if t.singlyTo = max(t.singlyTo, t.uneven()); t.lowestTip() < t.singlyTo {
		return nil
	}
	final, err := t.chain.Finalized(ctx)
	if err != nil {
		t.log.Debug().Err(err).Msg("the node does not say what is final, so there is no history to fetch in ranges")
		return nil
	}
	if !t.farBelow(final.Number) {
		return nil
	}
	if err := t.settleTails(ctx, final.Number); err != nil || t.lowestTip() < t.singlyTo {
		return err
	}
	cuts, err := t.cuts(ctx, final.Number)
	if err != nil || len(cuts) == 0 {
		return err
	}
	t.collector.survey(ctx, cuts[0], final.Number)
	t.progress.begin(cuts[0], final.Number)
	defer t.progress.end()
	t.log.Info().Uint64("from", cuts[0]+1).Uint64("to", final.Number).Msg("publishing history in ranges")
	if err := t.fill(ctx, cuts, head.Number); !errors.Is(err, errCorrectable) {
		return err
	}
	t.singlyTo = final.Number
	t.log.Info().Uint64("to", final.Number).Msg("blocks that cannot be proven now, and can still be corrected, are " +
		"published one by one")
	return nil
}

// uneven is the block up to which nothing goes out in ranges because a partition holds an unproven one that another
// lacks: its writer was killed between them. Such a block is in doubt only once all hold it, and below a range nothing
// could take it back. It is 0 where there is none.
func (t *tenure) uneven() (to uint64) {
	for _, st := range t.streams {
		for _, p := range st.branch.blocks {
			lacks := func(other *stream) bool { return other.branch.lacks(p) }
			if !p.verified && slices.ContainsFunc(t.streams, lacks) {
				to = max(to, p.Number+1)
			}
		}
	}
	return to
}

// settleTails proves or corrects what the partitions end with before a range follows: below a range nothing can be
// taken back. What is corrected is published again one by one, and so are the blocks above what nobody can prove now,
// as long as that could still be corrected.
func (t *tenure) settleTails(ctx context.Context, final uint64) error {
	tip := t.lowestTip()
	unproven, wrong, err := t.settleOpen(ctx)
	switch {
	case err != nil:
		return retry.Stop(err)
	case wrong:
		t.singlyTo = tip
	case unproven > 0 && unproven+chain.UndoHorizon > final:
		t.singlyTo = final
		t.log.Info().Uint64("unproven", unproven).Uint64("to", final).
			Msg("blocks below cannot be proven now, and can still be corrected: what follows is published one by one")
	}
	return nil
}

// errCorrectable means that a range holds what nobody has proven and could be corrected, if it was published block by
// block.
var errCorrectable = errors.New("not proven, and above what can be undone")

// correctable reports whether anything unproven of a stretch lies so high that readers can still undo it. A range they
// cannot.
func (s *stretch) correctable(head uint64) bool {
	return slices.ContainsFunc(s.blocks,
		func(f found) bool { return !f.verified && f.block.Number+chain.UndoHorizon > head })
}

// farBelow reports whether so many blocks of history are missing that ranges are worth it.
func (t *tenure) farBelow(number uint64) bool {
	return number >= t.lowestTip()+uint64(t.cfg.Scanner.Backfill.MinBlocks)
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
		block, err := t.chain.BlockAt(ctx, p.Number)
		if err != nil {
			return chain.BlockRef{}, err
		}
		if block.Hash == p.Hash {
			return p.BlockRef, nil
		}
	}
	return chain.BlockRef{}, retry.Stop(&otherChainError{topic: t.topic, partition: st.partition,
		oldest: st.branch.oldest(), whole: st.remembersAll()})
}

// fill reads the ranges between the cuts side by side, and writes them in order, up to one of which errCorrectable is
// true.
func (t *tenure) fill(ctx context.Context, cuts []uint64, head uint64) error {
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
				if s.correctable(head) {
					return errCorrectable
				}
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
	pieces, err := h.pieces(len(t.streams), t.cfg.Kafka.MaxBytes, t.encodeTo)
	if err != nil {
		return retry.Stop(err)
	}
	for _, p := range pieces {
		if err := t.each(func(st *stream) error { return t.writeRange(ctx, st, p) }); err != nil {
			return err
		}
		t.metrics.ranges.Inc()
	}
	for _, c := range h.blocks {
		t.words.reached(c)
	}
	t.metrics.publishedRange(h)
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
		blocks = slices.Insert(slices.Clone(blocks), 0, found{block: first, verified: true})
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
	if _, _, err := t.produce(ctx, st, p.batches[st.partition]); err != nil {
		return fmt.Errorf("publishing blocks %d to %d: %w", p.before.Number+1, p.last().Number, err)
	}
	failpoint.Hit("scanner.range.after")
	return st.branch.extend(p.before, p.last())
}
