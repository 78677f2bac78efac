package scanner

import (
	"context"
	"sync"
)

// budget bounds what a backfill holds in memory, and computes how wide the next range should be: so that ranges hold
// about a fixed number of bytes, be they dense or empty.
type budget struct {
	cfg   Backfill
	freed chan struct{} // holds a token after something was given back

	mu     sync.Mutex
	blocks int // of ranges that are being read, or wait for their turn
	bytes  int // of those that wait
	width  uint64
}

func newBudget(cfg Backfill) *budget {
	return &budget{cfg: cfg, freed: make(chan struct{}, 1), width: min(cfg.MaxRange, firstWidth)}
}

const (
	firstWidth  = 256     // blocks of the first ranges, while nothing is known of how full they are
	targetBytes = 1 << 20 // what a range should hold
)

// take waits until there is room for a range and reserves it: at most so many blocks. One range may always be under
// way, however large.
func (b *budget) take(ctx context.Context, most uint64) (blocks uint64, err error) {
	for {
		if blocks := b.tryTake(most); blocks > 0 {
			return blocks, nil
		}
		select {
		case <-b.freed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (b *budget) tryTake(most uint64) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	blocks := min(b.width, most)
	if b.blocks > 0 && (b.blocks+int(blocks) > b.cfg.MaxBlocks || b.bytes >= b.cfg.MaxBytes) {
		return 0
	}
	b.blocks += int(blocks)
	return blocks
}

// hold notes that a range has been read, and learns how wide the next ones should be: at most twice as wide.
func (b *budget) hold(blocks, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += bytes
	fitting := uint64(blocks) * targetBytes / uint64(max(bytes, 1))
	b.width = min(max(fitting, 1), 2*b.width, b.cfg.MaxRange)
}

// give returns what a range held.
func (b *budget) give(blocks, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocks, b.bytes = b.blocks-blocks, b.bytes-bytes
	select {
	case b.freed <- struct{}{}:
	default:
	}
}
