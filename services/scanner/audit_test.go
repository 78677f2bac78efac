package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// audited is what a reader makes of one partition, by the rules of the design and nothing of the scanner's own code: a
// dumb twin of its readers.
type audited struct {
	blocks    []auditedBlock // the branch as it stands
	finalized chain.BlockRef
	epochs    []uint64
	unclaimed int // records before the first EPOCH
	stale     int // records of an epoch that was over, or that nobody has claimed
	reorgs    []chain.Reorg
	halt      *wire.Halt
	ranges    []wire.RangeEnd
	parts     int            // batches that were not the last of their block
	seen      []auditedBlock // every block there ever was, also those taken back
}

// auditedBlock is a block, of a range also one of which nothing is known but its number.
type auditedBlock struct {
	end      wire.BlockEnd
	ranged   bool
	params   []wire.Param
	versions []wire.Param
	logs     []chain.Log
	txs      []chain.Tx
}

// hash is zero for a block inside a range, of which only the number is known.
func (b auditedBlock) hash() chain.Hash { return b.end.Block.Hash }

// auditor is a reader of one partition that has come as far as next, and goes on from there: what it has read is on the
// topic for ever.
type auditor struct {
	audited
	epoch   uint64
	open    []auditedBlock // of a range there may be several
	records []wire.Record
	parted  bool // the records are those of batches that have ended
	next    int64
	wrong   error // what no reader can follow
}

// audit reads a partition from its first record to its present end. Each record is read once, however often the test
// looks.
func (k *kafka) audit(ctx context.Context, partition int) (audited, error) {
	for len(k.auditors) <= partition {
		k.auditors = append(k.auditors, &auditor{})
	}
	a := k.auditors[partition]
	topic := wire.LogTopic(1337)
	first, end, err := k.client.Bounds(ctx, topic, partition)
	if err != nil || first != 0 || end < a.next {
		return audited{}, fmt.Errorf("the partition begins at %d and ends at %d, %d were read: %w", first, end, a.next,
			err)
	}
	reader := k.client.Reader(topic, partition, a.next)
	for a.wrong == nil && a.next < end {
		r, err := reader.Next(ctx)
		if err != nil {
			return a.audited, err
		}
		a.next = reader.Offset()
		if err := a.read(r); err != nil {
			a.wrong = fmt.Errorf("partition %d, offset %d: %w", partition, r.Offset, err)
		}
	}
	if a.wrong == nil && len(a.records) > 0 && !a.parted {
		return a.audited, fmt.Errorf("partition %d ends inside a block", partition)
	}
	return a.audited, a.wrong
}

func (a *auditor) read(r wire.Record) error {
	m, meta, err := wire.Decode(r)
	if err != nil {
		return err
	}
	_, claims := m.(wire.Epoch)
	switch {
	case a.epoch == 0 && !claims:
		a.unclaimed++
		return nil
	case meta.Epoch < a.epoch || meta.Epoch > a.epoch && !claims:
		a.stale++
		return nil
	}
	switch part, is := m.(wire.Part); {
	case is && int(part.Records) == len(a.records) && !a.parted:
		a.parted = true
		a.parts++
		return nil
	case is:
		return fmt.Errorf("a part after %d records counts %d", len(a.records), part.Records)
	case meta.Epoch > a.epoch && a.parted:
		a.open, a.records = nil, nil // whoever wrote the parts ended before the last
	}
	a.epoch, a.parted = meta.Epoch, false
	return a.take(m, r, &a.open, &a.records)
}

// into returns the open block that a record says it is of.
func into(open *[]auditedBlock, number uint64, hash chain.Hash) (*auditedBlock, error) {
	if n := len(*open); n > 0 {
		last := &(*open)[n-1]
		switch {
		case last.end.Block.Number == number && last.end.Block.Hash == hash:
			return last, nil
		case last.end.Block.Number >= number:
			return nil, fmt.Errorf("a record of block %d comes after one of block %d", number, last.end.Block.Number)
		}
	}
	*open = append(*open, auditedBlock{end: wire.BlockEnd{Block: chain.BlockRef{Number: number, Hash: hash}}})
	return &(*open)[len(*open)-1], nil
}

func (a *audited) take(m wire.Message, r wire.Record, open *[]auditedBlock, records *[]wire.Record) error {
	switch m := m.(type) {
	case wire.Param:
		b, err := into(open, m.Block.Number, m.Block.Hash)
		if err != nil || len(b.logs)+len(b.txs) > 0 {
			return fmt.Errorf("a PARAM after logs or transactions: %v", err)
		}
		if strings.HasPrefix(m.Name, "HANDLER_VERSION") { // no word of the DataStore
			b.versions = append(b.versions, m)
		} else {
			b.params = append(b.params, m)
		}
	case wire.Audit:
		b, err := into(open, m.Block.Number, m.Block.Hash)
		if err != nil || len(b.params)+len(b.logs)+len(b.txs) > 0 || m.Read.Number >= m.Block.Number {
			return fmt.Errorf("an AUDIT of block %d after parameters, logs or transactions of block %d: %v",
				m.Read.Number, m.Block.Number, err)
		}
	case wire.Log:
		b, err := into(open, m.Block, m.BlockHash)
		if err != nil || len(b.txs) > 0 || len(b.logs) > 0 && b.logs[len(b.logs)-1].Index >= m.Index {
			return fmt.Errorf("a LOG out of order: %v", err)
		}
		b.logs = append(b.logs, m.Log)
	case wire.Tx:
		b, err := into(open, m.Block, m.BlockHash)
		if err != nil || len(b.txs) > 0 && b.txs[len(b.txs)-1].Index >= m.Index {
			return fmt.Errorf("a TX out of order: %v", err)
		}
		b.txs = append(b.txs, m.Tx)
	case wire.BlockEnd:
		b, err := into(open, m.Block.Number, m.Block.Hash)
		if err != nil || len(*open) != 1 {
			return fmt.Errorf("block %d ends with records of others: %v", m.Block.Number, err)
		}
		b.end = m
		err = a.end(*b, *records)
		*open, *records = nil, nil
		return err
	case wire.RangeEnd:
		err := a.history(m, *open, *records)
		*open, *records = nil, nil
		return err
	default:
		if len(*records) > 0 {
			return fmt.Errorf("a %T inside a block", m)
		}
		return a.control(m)
	}
	*records = append(*records, r)
	return nil
}

// end is the apply rule: n = last+1 and parent = last hash. A block that comes twice is an error here: nothing may come
// twice from one scanner.
func (a *audited) end(b auditedBlock, records []wire.Record) error {
	ref := b.end.Block
	if int(b.end.Records) != len(records) || b.end.Digest != wire.Digest(records) {
		return fmt.Errorf("block %d does not hold what its end says", ref.Number)
	}
	if a.halt != nil {
		return fmt.Errorf("block %d comes after a HALT", ref.Number)
	}
	if len(a.blocks) > 0 {
		if last := a.blocks[len(a.blocks)-1].end.Block; ref.Number != last.Number+1 || ref.Parent != last.Hash {
			return fmt.Errorf("block %d %s does not follow block %d %s", ref.Number, ref.Hash, last.Number, last.Hash)
		}
	}
	a.blocks, a.seen = append(a.blocks, b), append(a.seen, b)
	if b.end.FinalDepth == 0 {
		return nil
	}
	first := a.blocks[0].end.Block
	final := chain.BlockRef{Number: first.Number - 1, Hash: first.Parent}
	if at := len(a.blocks) - 1 - int(b.end.FinalDepth); at >= 0 {
		final = a.blocks[at].end.Block
	}
	if final.Number != ref.Number-uint64(b.end.FinalDepth) || final.Hash.IsZero() ||
		final.Number <= a.finalized.Number {
		return fmt.Errorf("block %d calls the one %d below it final, which is %+v, after %+v", ref.Number,
			b.end.FinalDepth, final, a.finalized)
	}
	a.finalized = final
	return nil
}

// history takes a range in: the blocks with records, and the others between them.
func (a *audited) history(m wire.RangeEnd, open []auditedBlock, records []wire.Record) error {
	if int(m.Records) != len(records) || m.Digest != wire.Digest(records) || len(m.Blocks) != len(open) ||
		a.halt != nil {
		return fmt.Errorf("the range up to block %d does not hold what its end says", m.Last.Number)
	}
	if n := len(a.blocks); n > 0 && (a.blocks[n-1].end.Block.Number != m.Before.Number ||
		a.blocks[n-1].end.Block.Hash != m.Before.Hash) {
		return fmt.Errorf("the range behind block %d %s does not follow block %+v", m.Before.Number, m.Before.Hash,
			a.blocks[n-1].end.Block)
	}
	for number := m.Before.Number + 1; number <= m.Last.Number; number++ {
		b := auditedBlock{end: wire.BlockEnd{Block: chain.BlockRef{Number: number}}}
		if len(open) > 0 && open[0].end.Block.Number == number {
			b = open[0]
			if m.Blocks[0].Number != number || m.Blocks[0].Hash != b.end.Block.Hash {
				return fmt.Errorf("the range says %+v of block %+v", m.Blocks[0], b.end.Block)
			}
			b.end.Block, open, m.Blocks = m.Blocks[0], open[1:], m.Blocks[1:]
		}
		if number == m.Last.Number {
			b.end.Block = m.Last
		}
		b.ranged = true
		a.blocks = append(a.blocks, b)
		if !b.hash().IsZero() {
			a.seen = append(a.seen, b)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the range up to block %d holds block %+v", m.Last.Number, open[0].end.Block)
	}
	a.ranges = append(a.ranges, m)
	return nil
}

func (a *audited) control(m wire.Message) error {
	switch m := m.(type) {
	case wire.Epoch:
		a.epochs = append(a.epochs, m.Number)
	case wire.Reorg:
		if !m.Accepted && (a.halt != nil || m.Ancestor.Number < a.finalized.Number) {
			return fmt.Errorf("a reorg to %+v, halted %t, final block %d", m.Ancestor, a.halt != nil,
				a.finalized.Number)
		}
		tip := a.blocks[len(a.blocks)-1].end.Block
		// it takes nothing back, and lifts a HALT
		if only := m.Accepted && tip == m.Ancestor && m.OldTip.Number > tip.Number; !only {
			if err := a.rewind(m.Reorg); err != nil {
				return err
			}
		}
		if m.Accepted {
			a.halt, a.finalized = nil, m.Ancestor
		}
		a.reorgs = append(a.reorgs, m.Reorg)
	case wire.Halt:
		if a.halt != nil || m.Reason == "" {
			return errors.New("a second HALT, or one without a reason")
		}
		a.halt = &m
	case wire.Finalized:
		known := slices.ContainsFunc(a.blocks, func(b auditedBlock) bool { return b.end.Block.Hash == m.Block.Hash })
		if m.Block.Number <= a.finalized.Number || !known && m.Block.Number > 0 || a.halt != nil {
			return fmt.Errorf("block %d is final after block %d, known %t", m.Block.Number, a.finalized.Number, known)
		}
		a.finalized = m.Block
	default:
		return fmt.Errorf("a %T has no place here", m)
	}
	return nil
}

// rewind takes back everything above a block that is not inside a range.
func (a *audited) rewind(m chain.Reorg) error {
	at := slices.IndexFunc(a.blocks, func(b auditedBlock) bool { return b.end.Block == m.Ancestor })
	if at < 0 && len(a.blocks) > 0 && a.blocks[0].end.Block.Number == m.Ancestor.Number+1 &&
		a.blocks[0].end.Block.Parent == m.Ancestor.Hash {
		at = -1 // to the parent of the topic's first block
	} else if at < 0 {
		return fmt.Errorf("going back from %+v to %+v, which is not there", m.OldTip, m.Ancestor)
	}
	if at == len(a.blocks)-1 || a.blocks[len(a.blocks)-1].end.Block != m.OldTip || a.blocks[at+1].ranged {
		return fmt.Errorf("going back from %+v to %+v does not fit", m.OldTip, m.Ancestor)
	}
	a.blocks = slices.Clip(a.blocks[:at+1]) // what was handed out before is not written over
	return nil
}
