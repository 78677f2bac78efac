package scanner

import (
	"fmt"
	"math"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// stream is what stands in one partition of the log topic, as its readers understand it.
type stream struct {
	partition int
	next      int64 // offset of the first record that has not been read
	whole     bool  // everything from the partition's first claim on has been read
	unclaimed int64 // records before that claim, which count for nothing

	claim     wire.Claim // in force; what is written under another one counts for nothing
	known     bool       // the claim was read, or everything was
	ambiguous bool       // it was not, and records of several epochs were: which of them counts is a guess
	seen      uint64     // the highest epoch of all; the next claim outranks it, whatever it stands for
	owner     string     // who claimed it first
	start     uint64     // number of the partition's first block, if the partition is whole and has one
	branch    branch
	finalized chain.BlockRef // the newest that was called final, moved back by an accepted reorg only
	halted    *wire.Halt     // not nil until an accepted reorg
}

// remembersAll reports whether every block of the partition is remembered, from its first one's parent on.
func (s *stream) remembersAll() bool { return s.whole && s.branch.oldest().Number < s.start }

// apply reads on by one record.
func (s *stream) apply(m wire.Message, meta wire.Meta) error {
	s.seen = max(s.seen, meta.Epoch)
	if !s.counts(m, meta) {
		return nil
	}
	switch m := m.(type) {
	case wire.BlockEnd:
		err := s.block(m.Block)
		s.finalizeBelow(m.Block, m.FinalDepth)
		return err
	case wire.RangeEnd:
		return s.history(m.Before, m.Last)
	case wire.Reorg:
		return s.reorg(m)
	case wire.Finalized:
		s.finalize(m.Block)
	case wire.Halt:
		s.halted = &m
	}
	return nil
}

// counts reports whether a record counts, and begins an epoch with its EPOCH record.
func (s *stream) counts(m wire.Message, meta wire.Meta) bool {
	epoch, claims := m.(wire.Epoch)
	if !s.whole && !s.known && !claims {
		return s.guess(meta.Epoch)
	}
	if !s.claim.Counts(m, meta) {
		s.ambiguous = s.ambiguous || !s.whole && !s.known // of the number that others were taken to be of
		return false
	}
	if claims {
		s.owner, s.known = epoch.Owner, true
	}
	return true
}

// guess reports whether a record counts where reading began behind the EPOCH record of the claim in force, which is
// taken to be the highest epoch. What was read of lower ones until now came behind that EPOCH too, and counts for
// nothing.
func (s *stream) guess(epoch uint64) bool {
	first := s.claim == 0
	s.ambiguous = s.ambiguous || !first && epoch != uint64(s.claim)
	if !first && epoch > uint64(s.claim) {
		s.owner, s.branch, s.finalized, s.halted = "", branch{}, chain.BlockRef{}, nil
	}
	s.claim = max(s.claim, wire.Claim(epoch))
	return epoch == uint64(s.claim)
}

// block adds a block. One that comes again is read over.
func (s *stream) block(block chain.BlockRef) error {
	if s.branch.has(block) {
		return nil
	}
	s.begin(block.Number)
	return s.branch.push(block)
}

// history adds a range.
func (s *stream) history(before, last chain.BlockRef) error {
	if s.branch.has(last) {
		return nil
	}
	s.begin(before.Number + 1)
	return s.branch.extend(before, last)
}

func (s *stream) begin(number uint64) {
	if s.whole && s.start == 0 {
		s.start = number
	}
}

// reorg takes a branch back. One that was taken back before is published again, and read over: what has grown on the
// ancestor since is not what it speaks of.
func (s *stream) reorg(m wire.Reorg) error {
	if !m.Accepted && s.branch.has(m.Ancestor) && !s.branch.has(m.OldTip) {
		return nil
	}
	if err := s.rewind(m.Ancestor); err != nil {
		return err
	}
	if m.Accepted {
		s.finalized, s.halted = m.Ancestor, nil
	}
	return nil
}

func (s *stream) finalize(block chain.BlockRef) {
	if block.Number > s.finalized.Number {
		s.finalized = block
	}
}

// finalizeBelow notes that the block so far below one of the branch is final; 0 names none, and so does a block that
// is no longer remembered.
func (s *stream) finalizeBelow(block chain.BlockRef, depth uint32) {
	if final, on := s.branch.at(block.Number - uint64(depth)); on && depth > 0 && s.branch.has(block) {
		s.finalize(final)
	}
}

// rewind takes back what is above the ancestor. An ancestor from before the reading began is the only block known then.
func (s *stream) rewind(ancestor chain.BlockRef) error {
	if s.branch.cut(ancestor) {
		return nil
	}
	if s.whole || s.branch.endsRange || !s.branch.empty() && ancestor.Number >= s.branch.oldest().Number {
		return fmt.Errorf("going back to block %d %s, which is not there", ancestor.Number, ancestor.Hash)
	}
	s.branch = branch{blocks: []chain.BlockRef{ancestor}}
	return nil
}

// newest is the number of the partition's newest block, for whoever waits for more: 0 for an empty partition, beyond
// every block for a halted one.
func (s *stream) newest() uint64 {
	switch {
	case s.halted != nil:
		return math.MaxUint64
	case s.branch.empty():
		return 0
	default:
		return s.branch.tip().Number
	}
}
