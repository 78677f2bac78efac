package statevm

import (
	"context"
	"fmt"
	"sort"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// compare finds out whether the topic still has what the rows were made from. Rows may be ahead of it: the brokers have
// lost its end (one broker, and its host lost power), and the database has not. If the record before the offset is
// missing, or is another one, the rows go back to the newest block that both have, and follow what the scanner writes on
// from there. There has to be one: rows of another topic are not mended here.
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
	if _, same, err := topic.has(ctx, pg.Place{Next: at.Next, Mark: at.Mark}); err != nil || same {
		return err
	}
	common, err := f.common(ctx, topic)
	if err != nil {
		return err
	}
	if err := f.partition.Resume(ctx, common); err != nil {
		return fmt.Errorf("going back to block %d %s, which rows and topic have in common: %w", common.At.Number,
			common.At.Hash, err)
	}
	f.log.Warn().Int64("offset", at.Next).Int64("end", end).Uint64("from", at.Tip.Number).
		Uint64("to", common.At.Number).Stringer("hash", common.At.Hash).
		Msg("the log topic has lost its end; the rows have gone back to what it still has")
	return nil
}

// common finds the newest block of the rows that the topic still has. What is below a record that is the same is the
// same, so it can be searched for by halves.
func (f *follower) common(ctx context.Context, topic *topicEnd) (common pg.Resumption, err error) {
	at := f.partition.Offset()
	if at.Tip.Hash.IsZero() {
		if topic.first > 0 { // what stands there now has a beginning that nobody can read
			return common, haltf("partition %d holds no block, and the log topic has dropped what stood before offset "+
				"%d", at.Partition, topic.first)
		}
		return common, nil
	}
	blocks, err := f.partition.Sources(ctx)
	if err != nil {
		return common, err
	}
	var failed error
	n := sort.Search(len(blocks), func(i int) bool {
		if failed != nil {
			return true
		}
		record, same, err := topic.has(ctx, blocks[i].Place)
		if err != nil || !same {
			failed = err
			return true
		}
		_, meta, err := wire.Decode(record)
		common.Epoch, failed = meta.Epoch, err
		return err != nil
	})
	if failed != nil {
		return common, failed
	}
	if n == 0 {
		return common,
			haltf("partition %d was read to offset %d, and of the last %d blocks in the rows, up to block %d %s, "+
				"the log topic has none where it was: "+
				"it is another topic, or has lost too much (restore the topic, or fill a new generation: keeperctl "+
				"rebuild)",
				at.Partition, at.Next, len(blocks), at.Tip.Number, at.Tip.Hash)
	}
	common.At, common.Place = blocks[n-1].BlockRef, blocks[n-1].Place
	return common, nil
}

// topicEnd is a partition of the topic as it is now.
type topicEnd struct {
	open       func(offset int64) *bus.Reader
	first, end int64
}

// has reports whether the record before a place is the one that is known.
func (t *topicEnd) has(ctx context.Context, at pg.Place) (r bus.Record, same bool, err error) {
	if at.Next <= t.first || at.Next > t.end {
		return r, false, nil
	}
	r, err = t.open(at.Next - 1).Next(ctx)
	return r, err == nil && wire.Fingerprint(r) == at.Mark, err
}
