package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// spacing holds large liquidations of one market apart on a venue that closes whole positions only (LIQ-13): of those
// above a share of their side's open interest one is published for each block of the state. The others stay due and
// follow.
type spacing struct {
	share chain.Uint // 30-decimal factor; zero = no spacing
	last  map[chain.Address]uint64
}

func newSpacing(share chain.Uint) *spacing {
	return &spacing{share: share, last: map[chain.Address]uint64{}}
}

// on reports whether any liquidation has to wait for another.
func (s *spacing) on() bool { return !s.share.IsZero() }

// holds reports whether a liquidation of this size has to wait for another block, and takes the block's place if not.
func (s *spacing) holds(j job.Job, size, interest chain.Uint, block uint64) bool {
	if !s.on() || !perp.ApplyFactor(interest, s.share).Less(size) {
		return false
	}
	if s.last[j.Market] == block {
		return true
	}
	s.last[j.Market] = block
	return false
}
