package statevm

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// lostTail is rows that are ahead of the topic: the brokers lost the end of it (one broker, and its host lost power),
// and the database did not. The scanner writes on from where the topic ends now. As long as that is what the rows have
// been made from, block by block, they stay as they are; where it is anything else, the rows go back to the last block
// that is the same.
//
// The offset in the database stays where it was meanwhile, so a successor compares anew.
type lostTail struct {
	at      chain.BlockRef    // the newest block that rows and topic have in common; zero for a partition without one
	lacking []pg.SourcedBlock // blocks of the rows that the topic lacks, ascending

	// The place in the topic after the block at.
	next  int64
	mark  pg.Mark
	epoch uint64

	found []pg.SourcedBlock // blocks that have been written again, with where they are now
}

func (t *lostTail) String() string {
	return fmt.Sprintf("the log topic has lost its end: waiting for the scanner to write block %d %s again (%d "+
		"blocks are missing)",
		t.lacking[0].Number, t.lacking[0].Hash, len(t.lacking))
}

// compare finds out whether the topic still has what the rows were made from. If its end is missing, or is another one,
// the newest block that both have is looked for. There has to be one: rows of another topic are not mended here.
func (f *follower) compare(ctx context.Context) error {
	at := f.partition.Offset()
	if at.Next == 0 || at.Mark == (pg.Mark{}) {
		return nil
	}
	first, end, err := f.bounds(ctx)
	if err != nil {
		return err
	}
	if at.Next <= first {
		return nil // the record before is no longer there to compare with
	}
	topic := &topicEnd{open: f.open, first: first, end: end}
	if _, same, err := topic.has(ctx, at.Next, at.Mark); err != nil || same {
		return err
	}
	tail, err := f.common(ctx, topic)
	if err != nil {
		return err
	}
	f.log.Warn().Int64("offset", at.Next).Int64("end", end).Uint64("block", at.Tip.Number).
		Uint64("common", tail.at.Number).Int("missing", len(tail.lacking)).
		Msg("the log topic has lost its end; comparing the rows with what is written again")
	f.tail = tail
	if len(tail.lacking) == 0 {
		return f.resume(ctx)
	}
	return nil
}

// common finds the newest block of the rows that the topic still has. What is below a record that is the same is the
// same, so it can be searched for by halves.
func (f *follower) common(ctx context.Context, topic *topicEnd) (*lostTail, error) {
	at := f.partition.Offset()
	if at.Tip.Hash.IsZero() {
		if topic.first > 0 { // what stands there now has a beginning that nobody can read
			return nil, haltf("partition %d holds no block, and the log topic has dropped what stood before offset %d",
				at.Partition, topic.first)
		}
		return &lostTail{}, nil
	}
	blocks, err := f.partition.Sources(ctx)
	if err != nil {
		return nil, err
	}
	var epoch uint64
	var failed error
	n := sort.Search(len(blocks), func(i int) bool {
		if failed != nil {
			return true
		}
		record, same, err := topic.has(ctx, blocks[i].Next, blocks[i].Mark)
		if err != nil || !same {
			failed = err
			return true
		}
		_, meta, err := wire.Decode(record)
		epoch, failed = meta.Epoch, err
		return err != nil
	})
	if failed != nil {
		return nil, failed
	}
	if n == 0 {
		return nil,
			haltf("partition %d was read to offset %d, and of the last %d blocks in the rows, up to block %d %s, "+
				"the log topic has none where it was: "+
				"it is another topic, or has lost too much (restore the topic, or fill a new generation: keeperctl "+
				"rebuild)",
				at.Partition, at.Next, len(blocks), at.Tip.Number, at.Tip.Hash)
	}
	last := blocks[n-1]
	return &lostTail{at: last.BlockRef, lacking: blocks[n:], next: last.Next, mark: last.Mark, epoch: epoch}, nil
}

// topicEnd is a partition of the topic as it is now.
type topicEnd struct {
	open       func(offset int64) *bus.Reader
	first, end int64
}

// has reports whether the record before an offset is one that is known.
func (t *topicEnd) has(ctx context.Context, next int64, mark pg.Mark) (r bus.Record, same bool, err error) {
	if next <= t.first || next > t.end {
		return r, false, nil
	}
	r, err = t.open(next - 1).Next(ctx)
	return r, err == nil && wire.Fingerprint(r) == mark, err
}

// meet compares a step with the rows ahead of the topic. It is met when there is nothing more to do with it; otherwise
// rows and topic have parted before it, the rows have gone back, and it is to be judged like any other.
func (f *follower) meet(ctx context.Context, s step) (met bool, err error) {
	t := f.tail
	switch {
	case s.part != nil && t.lacks(s):
		if t.find(s); len(t.lacking) == 0 {
			return true, f.resume(ctx)
		}
		f.stands()
		return true, nil
	case s.part != nil && !s.part.isRange() && s.part.last.Number <= t.at.Number &&
		f.branch.has(s.part.last):
		v, err := f.branch.block(s.part.last)
		if err == nil && v == skip {
			return true, nil // a repetition
		}
	case s.part == nil && !s.commands():
		return true, nil
	}
	return false, f.resume(ctx)
}

// lacks reports whether a step is the next block that the topic has lost, and has the same content.
func (t *lostTail) lacks(s step) bool {
	want, got := t.lacking[0], s.part.last
	return want.Hash == got.Hash && want.Number == got.Number && want.Digest == s.part.digest
}

// find notes that the next block was written again.
func (t *lostTail) find(s step) {
	b := t.lacking[0]
	b.Source = pg.Source{Next: s.next, Mark: s.mark, Digest: s.part.digest}
	t.at, t.lacking, t.found = b.BlockRef, slices.Clone(t.lacking[1:]), append(t.found, b)
	t.next, t.mark, t.epoch = s.next, s.mark, s.epoch
}

// resume goes on from the newest block that rows and topic have in common.
func (f *follower) resume(ctx context.Context) error {
	t, from := f.tail, f.partition.Offset().Tip
	err := f.partition.Resume(ctx, pg.Resumption{Next: t.next, Mark: t.mark, Epoch: t.epoch, At: t.at, Found: t.found})
	if err != nil {
		return fmt.Errorf("going on from block %d %s, which rows and topic have in common: %w", t.at.Number, t.at.Hash,
			err)
	}
	f.tail = nil
	f.branch.rewind(t.at, false)
	f.log.Warn().Uint64("from", from.Number).Uint64("to", t.at.Number).Stringer("hash", t.at.Hash).
		Int64("offset", t.next).
		Msg("rows and topic agree again after the topic lost its end")
	f.stands()
	return f.reload(ctx)
}
