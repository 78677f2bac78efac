package statevm

import (
	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// step is what one or more records say once they are complete. At most one of block, reorg and finalized is set; a step without any only
// moves the offset.
type step struct {
	next  int64  // the offset after its last record
	epoch uint64 // the highest scanner epoch seen so far

	block     *block
	reorg     *chain.Reorg
	finalized *chain.BlockRef
}

// block is a block's share of one partition, checked against its BLOCK_END.
type block struct {
	wire.BlockEnd
	messages []wire.Message // Log, Tx and Param, in the order of the topic
}

// assembler gathers the records of one partition into steps.
type assembler struct {
	epoch    uint64
	records  []bus.Record // of the block that has not ended yet
	messages []wire.Message
}

// take adds a record. It returns a step when the record completes one.
func (a *assembler) take(r bus.Record) (step, bool, error) {
	message, meta, err := wire.Decode(r)
	if err != nil {
		return step{}, false, halt{err}
	}
	epoch := meta.Epoch
	if claim, is := message.(wire.Epoch); is {
		epoch = max(epoch, claim.Number)
	}
	if len(a.records) > 0 && epoch != a.epoch {
		return step{}, false, a.refuse(r, "a %s of epoch %d stands inside a block of epoch %d", meta.Kind, epoch, a.epoch)
	}
	s := step{next: r.Offset + 1, epoch: max(a.epoch, epoch)}
	if epoch < a.epoch {
		return s, true, nil // written by a scanner that had already been replaced
	}
	a.epoch = epoch
	switch m := message.(type) {
	case wire.Log, wire.Tx, wire.Param:
		a.records, a.messages = append(a.records, r), append(a.messages, message)
		return step{}, false, nil
	case wire.BlockEnd:
		s.block, err = a.end(r, m)
		return s, true, err
	}
	if len(a.records) > 0 {
		return step{}, false, a.refuse(r, "a %s stands inside a block", meta.Kind)
	}
	switch m := message.(type) {
	case wire.Epoch:
	case wire.Reorg:
		s.reorg = &m.Reorg
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

// end checks a block against its last record.
func (a *assembler) end(r bus.Record, end wire.BlockEnd) (*block, error) {
	records, messages := a.records, a.messages
	a.records, a.messages = nil, nil
	if int(end.Records) != len(records) {
		return nil, a.refuse(r, "block %d ends after %d records and has %d", end.Block.Number, end.Records, len(records))
	}
	if wire.Digest(records) != end.Digest {
		return nil, a.refuse(r, "the records of block %d are not those its end was written for", end.Block.Number)
	}
	for i, m := range messages {
		if number, hash := blockOf(m); number != end.Block.Number || hash != end.Block.Hash {
			return nil, a.refuse(records[i], "it is of block %d %s, inside block %d %s", number, hash, end.Block.Number, end.Block.Hash)
		}
	}
	return &block{BlockEnd: end, messages: messages}, nil
}

func blockOf(m wire.Message) (uint64, chain.Hash) {
	switch m := m.(type) {
	case wire.Log:
		return m.Block, m.BlockHash
	case wire.Tx:
		return m.Block, m.BlockHash
	case wire.Param:
		return m.Block.Number, m.Block.Hash
	}
	return 0, chain.Hash{}
}
