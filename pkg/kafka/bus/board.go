package bus

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// boardInterval is how often noted offsets are sent.
const boardInterval = time.Second

// board keeps the offsets that handlers note and sends them to the group's coordinator, where dashboards look.
type board struct {
	c          *Client
	g          GroupConfig
	generation *kafka.Generation

	mu    sync.Mutex
	noted map[int]int64
	sent  map[int]int64
}

func newBoard(c *Client, g GroupConfig, generation *kafka.Generation) *board {
	return &board{c: c, g: g, generation: generation, noted: make(map[int]int64)}
}

func (b *board) note(partition int, next int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted[partition] = next
}

// run sends until ctx ends.
func (b *board) run(ctx context.Context) {
	ticker := time.NewTicker(boardInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			b.send()
		}
	}
}

// send commits what has changed. It goes out under the generation in which it was noted, so the broker refuses it once
// that is over.
func (b *board) send() {
	b.mu.Lock()
	offsets := maps.Clone(b.noted)
	b.mu.Unlock()
	if len(offsets) == 0 || maps.Equal(offsets, b.sent) {
		return
	}
	if err := b.generation.CommitOffsets(map[string]map[int]int64{b.g.Topic: offsets}); err != nil {
		b.c.log.Debug().Err(err).Msgf("bus: offsets of group %s not committed", b.g.ID)
		return
	}
	b.sent = offsets
}
