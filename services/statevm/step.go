package statevm

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// step is what one or more records say once they are complete. At most one of its parts is set; a step without any only
// moves the offset.
type step struct {
	next  int64   // the offset after its last record
	mark  pg.Mark // of its last record
	epoch uint64  // the claim in force after it; 0 = none yet

	share     *share
	reorg     *wire.Reorg
	halt      *wire.Halt
	finalized *chain.BlockRef
}

// moves reports whether a step does more than move the offset.
func (s step) moves() bool { return s.share != nil || s.finalized != nil || s.commands() }

// commands reports whether a step takes blocks back, or halts: what waits is committed before it.
func (s step) commands() bool { return s.reorg != nil || s.halt != nil }

// share is what one partition got of a block, or of a range of finalized blocks, checked against its end.
type share struct {
	last   chain.BlockRef    // the block, or the range's last
	before chain.BlockRef    // the block under a range; zero for a single block
	times  map[uint64]uint64 // of the blocks of a range, in Unix milliseconds

	records    []bus.Record // that messages were read from, one each
	messages   []wire.Message
	digest     pg.Mark    // of its records
	finalDepth uint32     // the ancestor so far below the block is final; 0 = nothing is said of it
	events     []txEvents // what the messages say, once decoded
	unknown    []string   // names of events that are passed over without being known
	fault      error      // why they cannot be decoded
}

// isRange reports whether it is a range, and not a block.
func (s *share) isRange() bool { return !s.before.Hash.IsZero() }

// timeMs is the time of a block of the share.
func (s *share) timeMs(number uint64) uint64 {
	if s.isRange() {
		return s.times[number]
	}
	return s.last.TimeMs
}

// shareOfBlock is what a BLOCK_END closes.
func shareOfBlock(end wire.BlockEnd) *share {
	return &share{last: end.Block, finalDepth: end.FinalDepth}
}

// shareOfRange is what a RANGE_END closes.
func shareOfRange(end wire.RangeEnd) *share {
	s := &share{last: end.Last, before: end.Before, times: map[uint64]uint64{}}
	for _, b := range end.Blocks {
		s.times[b.Number] = b.TimeMs
	}
	return s
}
