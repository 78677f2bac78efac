package planner

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// quotes are the newest reports of the price topic.
type quotes struct {
	mu      sync.Mutex
	newest  map[chain.Address]wire.Price
	changed chan struct{} // holds one token when a newer report has come since it was last taken
}

func newQuotes() *quotes {
	return &quotes{newest: map[chain.Address]wire.Price{}, changed: make(chan struct{}, 1)}
}

// follow reads the price topic from maxAge ago until ctx ends. Records it does not understand stop it.
func (q *quotes) follow(ctx context.Context, client *bus.Client, topic string, maxAge time.Duration) error {
	const onlyPartition = 0
	offset, err := client.OffsetAt(ctx, topic, onlyPartition, time.Now().Add(-maxAge))
	if err != nil {
		return fmt.Errorf("looking for reports of the last %s: %w", maxAge, err)
	}
	reader := client.Reader(topic, onlyPartition, offset)
	for {
		records, err := reader.NextBatch(ctx, 1000)
		if err != nil {
			return fmt.Errorf("reading price reports: %w", err)
		}
		for _, r := range records {
			m, _, err := wire.Decode(r)
			if err != nil {
				return fmt.Errorf("reading price reports: %w", err)
			}
			report, ok := m.(wire.Price)
			if !ok {
				return fmt.Errorf("reading price reports: a %T has no place on %s (partition %d, offset %d)", m, topic, r.Partition, r.Offset)
			}
			q.add(report)
		}
	}
}

func (q *quotes) add(r wire.Price) {
	q.mu.Lock()
	newer := r.TimeMs > q.newest[r.Token].TimeMs
	if newer {
		q.newest[r.Token] = r
	}
	q.mu.Unlock()
	if newer {
		select {
		case q.changed <- struct{}{}:
		default:
		}
	}
}

// fresh returns the newest report of each token whose own time is not before the given one (ms).
func (q *quotes) fresh(sinceMs uint64) map[chain.Address]wire.Price {
	q.mu.Lock()
	defer q.mu.Unlock()
	fresh := maps.Clone(q.newest)
	maps.DeleteFunc(fresh, func(_ chain.Address, r wire.Price) bool { return r.TimeMs < sinceMs })
	return fresh
}
