package preflight

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/liquidation"
)

// Quotes is the board of price reports, fed from the price topic, and how abruptly they move. It is safe for concurrent
// use.
type Quotes struct {
	*price.Board
	complete atomic.Bool // whether the board holds all the topic held when this process began

	mu    sync.Mutex
	modes *liquidation.Modes // of all tokens, by the planner's own rule
	now   uint64             // time (ms) of the newest report
}

// NewQuotes makes a board without reports. The window is that over which the movement of prices is looked at.
func NewQuotes(window time.Duration) *Quotes {
	return &Quotes{Board: price.NewBoard(), modes: liquidation.NewModes(window)}
}

// Add gives the board a report.
func (q *Quotes) Add(r price.Report) {
	q.Board.Add(r)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.modes.Observe(r.Token, r.Min, r.TimeMs)
	q.now = max(q.now, r.TimeMs)
}

// Complete reports that the board holds all that the topic held when this process began.
func (q *Quotes) Complete() { q.complete.Store(true) }

// Mode is how volatile the markets are as of the newest report (LIQ-14).
func (q *Quotes) Mode() liquidation.Mode {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.modes.Mode(q.now)
}

// Follow reads the price topic from a board's window ago until ctx ends. Records that nobody can read are handed to
// unreadable and passed over.
func (q *Quotes) Follow(ctx context.Context, client *bus.Client, topic string,
	unreadable func(topic string, r bus.Record, why error)) error {
	const onlyPartition = 0
	offset, end, err := client.OffsetBack(ctx, topic, onlyPartition, price.Window)
	if err != nil {
		return fmt.Errorf("looking for the price reports of the last %s: %w", price.Window, err)
	}
	reader := client.Reader(topic, onlyPartition, offset)
	for {
		if reader.Offset() >= end {
			q.Complete()
		}
		records, err := reader.NextBatch(ctx, 1000)
		if err != nil {
			return fmt.Errorf("reading price reports: %w", err)
		}
		for _, r := range records {
			if err := q.take(r); err != nil {
				unreadable(topic, r, err)
			}
		}
	}
}

func (q *Quotes) take(r bus.Record) error {
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
