package sender

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/bus"
)

// rewind returns the offset of the first record of a partition that was written at most so long before its newest one.
// Both are stamped by their writers' clocks, so that it does not matter what time it is here.
func rewind(ctx context.Context, client *bus.Client, topic string, partition int, back time.Duration) (offset,
	end int64, err error) {
	first, end, err := client.Bounds(ctx, topic, partition)
	if err != nil || first == end {
		return end, end, err
	}
	newest, err := client.Reader(topic, partition, end-1).Next(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the newest record of %s/%d: %w", topic, partition, err)
	}
	offset, err = client.OffsetAt(ctx, topic, partition, newest.Time.Add(-back))
	return min(offset, end-1), end, err
}
