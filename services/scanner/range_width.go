package scanner

import "sync"

// rangeWidth computes how many blocks the next range of history should have, so that ranges hold about a fixed number
// of bytes, be they dense or empty. It is safe for concurrent use.
type rangeWidth struct {
	most uint64

	mu     sync.Mutex
	blocks uint64
}

func newRangeWidth(most uint64) *rangeWidth {
	return &rangeWidth{most: most, blocks: min(most, firstWidth)}
}

const (
	firstWidth  = 256     // blocks of the first ranges, while nothing is known of how full they are
	targetBytes = 1 << 20 // what a range should hold
)

// next is for a range of at most so many blocks.
func (w *rangeWidth) next(most uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(w.blocks, most)
}

// learn notes what a range held. The next ones are at most twice as wide.
func (w *rangeWidth) learn(blocks, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fitting := uint64(blocks) * targetBytes / uint64(max(bytes, 1))
	w.blocks = min(max(fitting, 1), 2*w.blocks, w.most)
}
