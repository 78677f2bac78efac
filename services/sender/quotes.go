package sender

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/wire"
)

// quotes is the board of price reports, fed from the price topic.
type quotes struct {
	*price.Board
	complete atomic.Bool // whether the board holds all the topic held when this process began
	nerves   *nerves
	reject   func(topic string, r bus.Record, why error) // takes records that nobody can read
}

func newQuotes(window time.Duration) *quotes {
	return &quotes{Board: price.NewBoard(), nerves: newNerves(window)}
}

// Add gives the board a report.
func (q *quotes) Add(r price.Report) {
	q.Board.Add(r)
	q.nerves.observe(r.Token, r.Min, r.TimeMs)
}

// follow reads the price topic from a board's window ago until ctx ends. Records that nobody can read are passed over.
func (q *quotes) follow(ctx context.Context, client *bus.Client, topic string) error {
	const onlyPartition = 0
	offset, end, err := client.OffsetBack(ctx, topic, onlyPartition, price.Window)
	if err != nil {
		return fmt.Errorf("looking for the price reports of the last %s: %w", price.Window, err)
	}
	reader := client.Reader(topic, onlyPartition, offset)
	for {
		if reader.Offset() >= end {
			q.complete.Store(true)
		}
		records, err := reader.NextBatch(ctx, 1000)
		if err != nil {
			return fmt.Errorf("reading price reports: %w", err)
		}
		for _, r := range records {
			if err := q.take(r); err != nil {
				q.reject(topic, r, err)
			}
		}
	}
}

func (q *quotes) take(r bus.Record) error {
	m, _, err := wire.Decode(r)
	if err != nil {
		return err
	}
	report, is := m.(wire.Price)
	if !is {
		return fmt.Errorf("a %T has no place among price reports (partition %d, offset %d)", m, r.Partition, r.Offset)
	}
	sound := price.FromMessage(report)
	if err := sound.Validate(); err != nil {
		return err
	}
	q.Add(sound)
	return nil
}
