package scanner

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// readTo reads records up to an offset, exclusive, and shows each message to look, if that is not nil.
func (s *stream) readTo(ctx context.Context, client *bus.Client, topic string, end int64,
	look func(wire.Message)) error {
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

// brokenError reports that a partition holds what no scanner of this build would have written.
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
const firstWindow = 4 * chain.UndoHorizon

// readTail reads the end of a partition: at least the horizon, or down to the end of a range, or everything.
func readTail(ctx context.Context, client *bus.Client, topic string, partition int, look func(wire.Message)) (*stream,
	error) {
	first, end, err := client.Bounds(ctx, topic, partition)
	if err != nil {
		return nil, err
	}
	if first == end && end > 0 {
		return nil, fmt.Errorf("%s/%d has dropped all its records, and with them where to go on (no scanner wrote for "+
			"as long as keeper.log_retention; see docs/runbooks/rebuild.md)", topic, partition)
	}
	begin, seen, err := beginning(ctx, client, topic, partition, first, end)
	if err != nil {
		return nil, err
	}
	for window := int64(firstWindow); ; window *= 4 {
		s := &stream{partition: partition, next: max(begin, end-window), unclaimed: begin - first, seen: seen}
		all := s.next == begin
		s.whole = all && first == 0
		err := s.readTo(ctx, client, topic, end, look)
		if all || err == nil && !s.ambiguous && (len(s.branch.blocks) >= chain.UndoHorizon || s.branch.endsRange) {
			return s, err
		}
		if _, broken := errors.AsType[*brokenError](err); err != nil && !broken {
			return nil, err
		}
	}
}

// beginning finds a partition's first claim, which mostly is its first record, and the highest epoch before it; the
// partition's end if there is none. Where the topic has dropped its beginning, what is left begins inside of an epoch.
func beginning(ctx context.Context, client *bus.Client, topic string, partition int, first, end int64) (offset int64,
	seen uint64, err error) {
	if first > 0 {
		return first, 0, nil
	}
	reader := client.Reader(topic, partition, first)
	for limit := 1; reader.Offset() < end; limit = int(min(1000, end-reader.Offset())) {
		records, err := reader.NextBatch(ctx, limit)
		if err != nil {
			return 0, 0, err
		}
		for _, r := range records {
			m, meta, err := wire.Decode(r)
			if err != nil {
				return 0, 0, &brokenError{topic, partition, r.Offset, err}
			}
			if _, claims := m.(wire.Epoch); claims {
				return r.Offset, seen, nil
			}
			seen = max(seen, meta.Epoch)
		}
	}
	return end, seen, nil
}
