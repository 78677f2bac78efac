package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// Bounds returns the first offset that is still in a partition, and its end: the offset the next record will get. An
// empty partition has first = end. It waits for brokers that are down.
func (c *Client) Bounds(ctx context.Context, topic string, partition int) (first, end int64, err error) {
	err = c.do(ctx, fmt.Sprintf("asking for the bounds of %s/%d", topic, partition),
		func(ctx context.Context) error {
			first, end, err = c.bounds(ctx, topic, partition)
			return err
		})
	return first, end, err
}

// OffsetAt returns the offset of the first record written at or after a time, by its writer's clock, or the partition's
// end (as it was when the question was asked) when there is none.
func (c *Client) OffsetAt(ctx context.Context, topic string, partition int, at time.Time) (offset int64, err error) {
	err = c.do(ctx, fmt.Sprintf("asking for an offset of %s/%d by time", topic, partition),
		func(ctx context.Context) error {
			offset, err = c.offsetAt(ctx, topic, partition, at)
			return err
		})
	return offset, err
}

// OffsetBack returns the offset of the first record of a partition that was written at most so long before its newest
// one, and the partition's end. Both times are stamped by the records' writers, so that it does not matter what time it
// is here. It waits for brokers that are down.
func (c *Client) OffsetBack(ctx context.Context, topic string, partition int, back time.Duration) (offset, end int64,
	err error) {
	first, end, err := c.Bounds(ctx, topic, partition)
	if err != nil || first == end {
		return end, end, err
	}
	newest, err := c.Reader(topic, partition, end-1).Next(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the newest record of %s/%d: %w", topic, partition, err)
	}
	offset, err = c.OffsetAt(ctx, topic, partition, newest.Time.Add(-back))
	return min(offset, end-1), end, err
}

func (c *Client) offsetAt(ctx context.Context, topic string, partition int, at time.Time) (int64, error) {
	// The end first: a record that arrives between the two questions must not be passed over.
	_, end, err := c.bounds(ctx, topic, partition)
	if err != nil {
		return 0, err
	}
	answer, err := c.listOffsets(ctx, topic, partition, kafka.TimeOffsetOf(partition, at))
	if err != nil {
		return 0, err
	}
	for offset := range answer.Offsets {
		if offset >= 0 {
			return offset, nil
		}
	}
	return end, nil
}

func (c *Client) bounds(ctx context.Context, topic string, partition int) (first, end int64, err error) {
	answer, err := c.listOffsets(ctx, topic, partition, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	return answer.FirstOffset, answer.LastOffset, err
}

func (c *Client) listOffsets(ctx context.Context, topic string, partition int,
	questions ...kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
	answer, err := c.kafka.ListOffsets(ctx,
		&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: questions}})
	if err != nil {
		return kafka.PartitionOffsets{}, err
	}
	if len(answer.Topics[topic]) != 1 {
		return kafka.PartitionOffsets{}, errors.New("the broker did not answer for the partition")
	}
	p := answer.Topics[topic][0]
	if errors.Is(p.Error, kafka.UnknownTopicOrPartition) {
		return p, cmp.Or(c.checkPartition(ctx, topic, partition), p.Error)
	}
	return p, p.Error
}
