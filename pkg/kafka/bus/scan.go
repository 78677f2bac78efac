package bus

import (
	"context"
	"iter"
)

// Scan yields the records of a partition from an offset on, or from the first that there is, up to the end that it has
// at the beginning. It ends after an error. It waits for brokers that are down.
func (c *Client) Scan(ctx context.Context, topic string, partition int, from int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		first, end, err := c.Bounds(ctx, topic, partition)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for reader := c.Reader(topic, partition, max(first, from)); reader.Offset() < end; {
			batch, err := reader.NextBatch(ctx, int(min(1000, end-reader.Offset())))
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range batch {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}
