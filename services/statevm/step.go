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

	part      *blockPart
	reorg     *wire.Reorg
	halt      *wire.Halt
	finalized *chain.BlockRef
}

// moves reports whether a step does more than move the offset.
func (s step) moves() bool { return s.part != nil || s.finalized != nil || s.commands() }

// commands reports whether a step takes blocks back, or halts: what waits is committed before it.
func (s step) commands() bool { return s.reorg != nil || s.halt != nil }

// blockPart is what one partition got of a block, or of a range of finalized blocks, checked against its end.
type blockPart struct {
	last   chain.BlockRef    // the block, or the range's last
	before chain.BlockRef    // the block under a range; zero for a single block
	times  map[uint64]uint64 // of the blocks of a range, in Unix milliseconds

	records    []bus.Record // that messages were read from, one each
	messages   []wire.Message
	finalDepth uint32     // the ancestor so far below the block is final; 0 = nothing is said of it
	events     []txEvents // what the messages say, once decoded
	unknown    []string   // names of events that are passed over without being known
	fault      error      // why they cannot be decoded
}

// isRange reports whether it is a range, and not a block.
func (s *blockPart) isRange() bool { return !s.before.Hash.IsZero() }

// timeMs is the time of a block of the part.
func (s *blockPart) timeMs(number uint64) uint64 {
	if s.isRange() {
		return s.times[number]
	}
	return s.last.TimeMs
}

// shareOfBlock is what a BLOCK_END closes.
func shareOfBlock(end wire.BlockEnd) *blockPart {
	return &blockPart{last: end.Block, finalDepth: end.FinalDepth}
}

// shareOfRange is what a RANGE_END closes.
func shareOfRange(end wire.RangeEnd) *blockPart {
	s := &blockPart{last: end.Last, before: end.Before, times: map[uint64]uint64{}}
	for _, b := range end.Blocks {
		s.times[b.Number] = b.TimeMs
	}
	return s
}
