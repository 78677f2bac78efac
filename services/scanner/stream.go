package scanner

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// stream is what stands in one partition of the log topic, as its readers understand it.
type stream struct {
	partition int
	next      int64 // offset of the first record that has not been read
	whole     bool  // everything from the partition's first record on has been read

	epoch     uint64 // the highest; what is written under a lower one counts for nothing
	owner     string // who claimed it first
	branch    branch
	finalized uint64
}

// apply reads on by one record.
func (s *stream) apply(m wire.Message, meta wire.Meta) error {
	if meta.Epoch < s.epoch {
		return nil
	}
	if meta.Epoch > s.epoch {
		if err := s.enter(m, meta.Epoch); err != nil {
			return err
		}
	}
	switch m := m.(type) {
	case wire.BlockEnd:
		if s.branch.has(m.Block) {
			return nil
		}
		return s.branch.push(m.Block)
	case wire.Reorg:
		return s.rewind(m.Ancestor)
	case wire.Finalized:
		s.finalized = max(s.finalized, m.Block.Number)
	}
	return nil
}

// enter begins a higher epoch. An epoch begins with its EPOCH record; where reading began behind that record, what was read of lower epochs until
// now came behind it too, and counts for nothing.
func (s *stream) enter(m wire.Message, epoch uint64) error {
	claim, begins := m.(wire.Epoch)
	switch {
	case begins:
		s.owner = claim.Owner
	case s.whole:
		return fmt.Errorf("epoch %d does not begin with an EPOCH record", epoch)
	default:
		s.owner, s.branch = "", branch{}
	}
	s.epoch = epoch
	return nil
}

// rewind takes back what is above the ancestor. An ancestor from before the reading began is the only block known then.
func (s *stream) rewind(ancestor chain.BlockRef) error {
	if s.branch.cut(ancestor) {
		return nil
	}
	if s.whole || !s.branch.empty() && ancestor.Number >= s.branch.oldest().Number {
		return fmt.Errorf("a reorg goes back to block %d %s, which is not there", ancestor.Number, ancestor.Hash)
	}
	s.branch = branch{blocks: []chain.BlockRef{ancestor}}
	return nil
}

// readTo reads records up to an offset, exclusive, and shows each message to look, if that is not nil.
func (s *stream) readTo(ctx context.Context, client *bus.Client, topic string, end int64, look func(wire.Message)) error {
	reader := client.Reader(topic, s.partition, s.next)
	for s.next < end {
		const most = 1000
		records, err := reader.NextBatch(ctx, int(min(most, end-s.next)))
		if err != nil {
			return err
		}
		for _, r := range records {
			m, meta, err := wire.Decode(r)
			if err == nil {
				err = s.apply(m, meta)
			}
			if err != nil {
				return &brokenError{topic, s.partition, r.Offset, err}
			}
			if look != nil {
				look(m)
			}
			s.next = r.Offset + 1
		}
	}
	return nil
}

// brokenError says that a partition holds what no scanner of this build would have written.
type brokenError struct {
	topic     string
	partition int
	offset    int64
	cause     error
}

func (e *brokenError) Error() string {
	return fmt.Sprintf("%s/%d cannot be continued: at offset %d: %v", e.topic, e.partition, e.offset, e.cause)
}

func (e *brokenError) Unwrap() error { return e.cause }

// firstWindow is how many records of a partition's tail are read at first: enough for the horizon on a quiet chain.
const firstWindow = 4 * horizon

// readTail reads the end of a partition: at least the horizon, or everything.
func readTail(ctx context.Context, client *bus.Client, topic string, partition int, look func(wire.Message)) (*stream, error) {
	first, end, err := client.Bounds(ctx, topic, partition)
	if err != nil {
		return nil, err
	}
	for window := int64(firstWindow); ; window *= 4 {
		s := &stream{partition: partition, next: max(first, end-window)}
		s.whole = s.next == first
		err := s.readTo(ctx, client, topic, end, look)
		if s.whole || err == nil && len(s.branch.blocks) >= horizon {
			return s, err
		}
		if _, broken := errors.AsType[*brokenError](err); err != nil && !broken {
			return nil, err
		}
	}
}
