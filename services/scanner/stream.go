package scanner

import (
	"fmt"
	"math"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// stream is what stands in one partition of the log topic, as its readers understand it.
type stream struct {
	partition int
	next      int64 // offset of the first record that has not been read
	whole     bool  // everything from the partition's first claim on has been read
	unclaimed int64 // records before that claim, which count for nothing

	begun int64 // offset of the first record of the block that has not ended yet
	count int   // its records so far; 0 if there is no such block

	claim     wire.Claim // in force; what is written under another one counts for nothing
	known     bool       // the claim was read, or everything was
	doubtful  bool       // it was not, and records of several epochs were: which of them counts is a guess
	seen      uint64     // the highest epoch of all; the next claim outranks it, whatever it stands for
	owner     string     // who claimed it first
	start     uint64     // number of the partition's first block, if the partition is whole and has one
	branch    branch
	finalized chain.BlockRef // the newest that was called final, moved back by an accepted reorg only
	halted    *wire.Halt     // not nil until an accepted reorg
}

// remembersAll reports whether every block of the partition is remembered, from its first one's parent on.
func (s *stream) remembersAll() bool { return s.whole && s.branch.oldest().Number < s.start }

// apply reads on by one record, which stands at an offset.
func (s *stream) apply(m wire.Message, meta wire.Meta, offset int64) error {
	s.seen = max(s.seen, meta.Epoch)
	if !s.counts(m, meta) {
		return nil
	}
	switch m := m.(type) {
	case wire.Log, wire.Tx, wire.Param, wire.Audit:
		s.gather(offset)
	case wire.BlockEnd:
		err := s.block(placed{BlockRef: m.Block, attempt: m.Attempt, verified: m.Verified, first: s.firstOf(m, offset),
			end: offset})
		s.finalizeBelow(m.Block, m.FinalDepth)
		return err
	case wire.RangeEnd:
		s.count = 0
		return s.history(m.Before, m.Last)
	case wire.Reorg:
		return s.reorg(m)
	case wire.Correction:
		return s.correct(m.Ancestor, m.Attempt)
	case wire.Finalized:
		s.finalize(m.Block)
	case wire.Proven:
		s.branch.prove(m.Block, m.Attempt)
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
		s.doubtful = s.doubtful || !s.whole && !s.known // of the number that others were taken to be of
		return false
	}
	if claims {
		s.owner, s.known, s.count = epoch.Owner, true, 0 // parts of a block whose writer ended before its last are void
	}
	return true
}

// guess reports whether a record counts where reading began behind the EPOCH record of the claim in force, which is taken
// to be the highest epoch. What was read of lower ones until now came behind that EPOCH too, and counts for nothing.
func (s *stream) guess(epoch uint64) bool {
	first := s.claim == 0
	s.doubtful = s.doubtful || !first && epoch != uint64(s.claim)
	if !first && epoch > uint64(s.claim) {
		s.owner, s.branch, s.finalized, s.halted, s.count = "", branch{}, chain.BlockRef{}, nil, 0
	}
	s.claim = max(s.claim, wire.Claim(epoch))
	return epoch == uint64(s.claim)
}

// gather notes a record of a block that has not ended yet.
func (s *stream) gather(offset int64) {
	if s.count == 0 {
		s.begun = offset
	}
	s.count++
}

// firstOf is the offset of the first record of a block that ends at an offset. Where reading began inside the block it
// is computed.
func (s *stream) firstOf(end wire.BlockEnd, offset int64) int64 {
	first := offset - int64(end.Records)
	if s.count > 0 && s.count == int(end.Records) {
		first = s.begun
	}
	s.count = 0
	return first
}

// block adds a block. One that comes again is read over.
func (s *stream) block(p placed) error {
	if known, on := s.branch.at(p.Number); on && known.Hash == p.Hash && p.attempt <= known.attempt {
		return nil
	}
	s.begin(p.Number)
	return s.branch.push(p)
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

// correct takes back what was published wrong. Attempts rise with each correction, so one that is not above the
// branch's is published again.
func (s *stream) correct(ancestor chain.BlockRef, attempt uint32) error {
	if s.branch.has(ancestor) && attempt <= s.branch.attempt {
		return nil
	}
	if err := s.rewind(ancestor); err != nil {
		return err
	}
	s.branch.attempt = max(s.branch.attempt, attempt)
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
		s.finalize(final.BlockRef)
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
	s.branch = branch{blocks: []placed{verifiedBlock(ancestor)}, attempt: s.branch.attempt}
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
