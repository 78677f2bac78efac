package statevm

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// assembler gathers the records of one partition into steps.
type assembler struct {
	claim    wire.Claim
	own      func(key chain.Hash) bool // whether the partition has the rows of a routing key; nil = of all
	records  []bus.Record              // of the block or range that has not ended yet
	messages []wire.Message
	parted   bool // a batch of the block has ended, and another is to follow
}

// take adds a record. It returns a step when the record completes one.
func (a *assembler) take(r bus.Record) (step, bool, error) {
	message, meta, err := wire.Decode(r)
	if err != nil {
		return step{}, false, halt{error: err, record: &r}
	}
	before := a.claim
	counts := a.claim.Counts(message, meta)
	if len(a.records) > 0 && (!counts || a.claim != before) {
		switch {
		case a.parted && !counts:
			return step{}, false, nil // a batch that counts for nothing, between two batches of the block
		case a.parted:
			// whoever wrote the parts ended before the last: the block follows whole
			a.records, a.messages, a.parted = nil, nil, false
		default:
			return step{}, false, a.refuse(r, "a %s of epoch %d stands inside a block of epoch %d", meta.Kind,
				meta.Epoch, before)
		}
	}
	s := step{next: r.Offset + 1, mark: wire.Fingerprint(r), epoch: uint64(a.claim)}
	if !counts {
		return s, true, nil // written by a scanner that had been replaced, or for a topic that is gone
	}
	switch m := message.(type) {
	case wire.Log, wire.Tx, wire.Param, wire.Audit:
		a.records, a.messages, a.parted = append(a.records, r), append(a.messages, message), false
		return step{}, false, nil
	case wire.Part:
		if int(m.Records) != len(a.records) || a.parted || len(a.records) == 0 {
			return step{}, false, a.refuse(r, "a part of block %d ends after %d records and has %d", m.Block.Number,
				m.Records, len(a.records))
		}
		a.parted = true
		return step{}, false, nil
	case wire.BlockEnd:
		s.part, err = a.endBlock(r, m)
		return s, true, err
	case wire.RangeEnd:
		s.part, err = a.endRange(r, m)
		return s, true, err
	}
	if len(a.records) > 0 {
		return step{}, false, a.refuse(r, "a %s stands inside a block", meta.Kind)
	}
	switch m := message.(type) {
	case wire.Epoch:
	case wire.Reorg:
		s.reorg = &m
	case wire.Halt:
		s.halt = &m
	case wire.Finalized:
		s.finalized = &m.Block
	default:
		return step{}, false, a.refuse(r, "a %s does not belong into the log topic", meta.Kind)
	}
	return s, true, nil
}

func (a *assembler) refuse(r bus.Record, format string, args ...any) error {
	return haltf("record at partition %d, offset %d: "+format, append([]any{r.Partition, r.Offset}, args...)...)
}

// endBlock checks a block against its last record.
func (a *assembler) endBlock(r bus.Record, end wire.BlockEnd) (*blockPart, error) {
	s := shareOfBlock(end)
	if err := a.close(s, r, end.Records, end.Digest); err != nil {
		return nil, err
	}
	for i, m := range s.messages {
		if of := blockOf(m); of.Number != end.Block.Number || of.Hash != end.Block.Hash {
			return nil, a.refuse(s.records[i], "it is of block %d %s, inside block %d %s", of.Number, of.Hash,
				end.Block.Number, end.Block.Hash)
		}
	}
	s.keep(a.own)
	return s, nil
}

// endRange checks a range against its last record: every record is of a block that the end names, and they stand in
// order.
func (a *assembler) endRange(r bus.Record, end wire.RangeEnd) (*blockPart, error) {
	if end.Last.Number <= end.Before.Number || end.Before.Hash.IsZero() {
		return nil, a.refuse(r, "a range goes from block %d, child of %s, to block %d", end.Before.Number+1,
			end.Before.Hash, end.Last.Number)
	}
	s := shareOfRange(end)
	if err := a.close(s, r, end.Records, end.Digest); err != nil {
		return nil, err
	}
	hashes, low := map[uint64]chain.Hash{}, end.Before.Number
	for _, b := range end.Blocks {
		if b.Number <= low || b.Number > end.Last.Number || b.Number == end.Last.Number && b.Hash != end.Last.Hash {
			return nil, a.refuse(r, "block %d %s cannot stand there in the range from %d to %d", b.Number, b.Hash,
				end.Before.Number+1, end.Last.Number)
		}
		low, hashes[b.Number] = b.Number, b.Hash
	}
	low = end.Before.Number
	for i, m := range s.messages {
		of := blockOf(m)
		if hash, named := hashes[of.Number]; !named || hash != of.Hash || of.Number < low {
			return nil, a.refuse(s.records[i],
				"it is of block %d %s, which cannot stand there in the range from %d to %d",
				of.Number, of.Hash, end.Before.Number+1, end.Last.Number)
		}
		low = of.Number
	}
	s.keep(a.own)
	return s, nil
}

// close hands the gathered records to the block part that ends with r.
func (a *assembler) close(s *blockPart, r bus.Record, records uint32, digest [32]byte) error {
	s.records, s.messages = a.records, a.messages
	a.records, a.messages, a.parted = nil, nil, false
	if int(records) != len(s.records) {
		return a.refuse(r, "block %d ends after %d records and has %d", s.last.Number, records, len(s.records))
	}
	if wire.Digest(s.records) != digest {
		return a.refuse(r, "the records of block %d are not those its end was written for", s.last.Number)
	}
	return nil
}

func blockOf(m wire.Message) (of chain.BlockRef) {
	switch m := m.(type) {
	case wire.Log:
		of.Number, of.Hash = m.Block, m.BlockHash
	case wire.Tx:
		of.Number, of.Hash = m.Block, m.BlockHash
	case wire.Param:
		of = m.Block
	case wire.Audit:
		of = m.Block
	}
	return of
}
