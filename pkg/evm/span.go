package evm

import (
	"sync"
	"time"
)

// span is how many blocks an endpoint is asked the logs of at once. It shrinks when the node refuses and widens by a
// fixed step after some successes; a ceiling that was learnt is kept, and tried again after a while. It is safe for
// concurrent use and pure: every time comes from outside.
type span struct {
	widest uint64 // configured

	mu      sync.Mutex
	size    uint64    // to ask for next
	base    uint64    // the size it was last made smaller to
	ceiling uint64    // learnt; 0 if none
	at      time.Time // when it was learnt
	good    int       // successes since the size last changed
	parts   int       // times the filter has to be halved
}

const (
	successesToWiden = 4
	ceilingHolds     = 10 * time.Minute
)

func newSpan(widest uint64) *span { return &span{widest: widest, size: widest, base: widest} }

// next returns how many blocks to ask for.
func (s *span) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// limit is the widest range to ask for at this time.
func (s *span) limit(now time.Time) uint64 {
	if s.ceiling == 0 || now.Sub(s.at) >= ceilingHolds {
		return s.widest
	}
	return min(s.ceiling, s.widest)
}

// worked notes that so many blocks were answered. Only full ranges say that more may be asked for.
func (s *span) worked(now time.Time, blocks uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocks < s.size {
		return
	}
	if s.good++; s.good < successesToWiden {
		return
	}
	s.good = 0
	s.size = min(s.size+s.step(), s.limit(now))
	if s.ceiling != 0 && s.size > s.ceiling { // it was tried again, and is higher now
		s.ceiling = 0
	}
}

// step is a quarter of what the size was made smaller to: what is known to work grows steadily, and is not far
// overshot.
func (s *span) step() uint64 { return max(s.base/4, 1) }

// refused notes that so many blocks are more than the node gives at once, which is limit blocks if it said so, 0 if
// not.
func (s *span) refused(now time.Time, blocks, limit uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case limit == 0:
		limit = blocks / 2
	case limit >= blocks: // the node counts otherwise than we do
		limit = blocks - min(blocks, 1)
	}
	s.ceiling, s.at = max(limit, 1), now
	s.resize(s.ceiling)
}

// crowded notes that so many blocks hold more logs than the node gives at once. That is no ceiling: other blocks hold
// fewer.
func (s *span) crowded(blocks uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resize(max(blocks, 1))
}

func (s *span) resize(to uint64) {
	s.size, s.good = min(s.size, to), 0
	s.base = s.size
}

// learnt returns the ceiling the node has taught; 0 if none is in force.
func (s *span) learnt(now time.Time) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ceiling == 0 || now.Sub(s.at) >= ceilingHolds {
		return 0
	}
	return s.ceiling
}

// split notes that the filter has too many addresses or topics; pieces returns how often to halve it from the
// beginning.
func (s *span) split(times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = max(s.parts, times)
}

func (s *span) pieces() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts
}
