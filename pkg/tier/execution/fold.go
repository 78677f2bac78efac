package execution

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Decoder understands the contracts' logs. The logs of one call are of one transaction; blockTimeMs is in Unix
// milliseconds.
type Decoder interface {
	Transaction(logs []chain.Log, blockTimeMs uint64) ([]perp.Event, error)
}

// Share is what one partition has of a block or a range: its LOG and TX records, each in the order they stand in.
type Share struct {
	Logs []chain.Log
	Txs  []chain.Tx
}

// Fold joins the partitions of one log topic. Whoever reads it gathers the records of a partition up to a BLOCK_END or
// RANGE_END and hands them over; PARAM and FINALIZED records do not concern it. Records of scanners that have been
// replaced (a lower epoch) are the reader's to leave out, and so is a batch whose beginning it has not read.
//
// It is for one goroutine at a time.
type Fold struct {
	decoder        Decoder
	partitions     []partition
	blocks         map[blockID]*block
	forgottenBelow uint64 // blocks below have been forgotten
}

// partition is how far one partition was read.
type partition struct {
	begun bool
	tip   uint64
	spans []span // of numbers that came in ranges
}

// span is a range of block numbers, both ends included.
type span struct{ first, last uint64 }

// blockID identifies a block.
type blockID struct {
	number uint64
	hash   chain.Hash
}

// block is what is known of one block so far.
type block struct {
	ref   chain.BlockRef
	parts []*blockShare // by partition; nil = not read, or taken back
	told  bool
}

// blockShare is what one partition has of a block, decoded.
type blockShare struct {
	endings []Execution // Tx not filled in yet
	txs     []chain.Tx
}

// retainedBlocks is for how many blocks under the partition furthest behind the fold remembers what it has returned:
// longer than any repetition of records by a scanner that starts again.
const retainedBlocks = chain.UndoHorizon

// NewFold returns a fold over the given number of partitions.
func NewFold(decoder Decoder, partitions int) *Fold {
	return &Fold{decoder: decoder, partitions: make([]partition, partitions), blocks: map[blockID]*block{}}
}

// Block takes what a partition has of a block, at its BLOCK_END, and returns the executions that are complete now. An
// error means that the records make no sense; the fold must not be used after one.
func (f *Fold) Block(partition int, ref chain.BlockRef, s Share) ([]Execution, error) {
	p, err := f.read(ref.TimeMs, s)
	if err != nil {
		return nil, err
	}
	b := f.add(partition, ref, p)
	f.advance(partition, ref.Number)
	return f.emit([]*block{b})
}

// Range takes what a partition has of a range of final blocks, at its RANGE_END: before is the block under it, and
// blocks are those with records in this partition.
func (f *Fold) Range(partition int, before, last chain.BlockRef, blocks []chain.BlockRef, s Share) ([]Execution,
	error) {
	for _, ref := range blocks {
		of := Share{
			Logs: only(s.Logs, func(l chain.Log) bool { return l.BlockHash == ref.Hash }),
			Txs:  only(s.Txs, func(t chain.Tx) bool { return t.BlockHash == ref.Hash }),
		}
		p, err := f.read(ref.TimeMs, of)
		if err != nil {
			return nil, err
		}
		f.add(partition, ref, p)
	}
	reach := span{before.Number + 1, last.Number}
	f.partitions[partition].spans = append(f.partitions[partition].spans, reach)
	f.advance(partition, last.Number)
	inside := slices.Collect(maps.Values(f.blocks))
	return f.emit(slices.DeleteFunc(inside, func(b *block) bool { return !reach.holds(b.ref.Number) }))
}

// Undo takes a partition's REORG. Executions of the blocks it takes back that were not returned yet are dropped. A
// REORG that is read a second time changes nothing.
func (f *Fold) Undo(partition int, r chain.Reorg) {
	tip := f.blocks[blockID{r.OldTip.Number, r.OldTip.Hash}]
	if tip == nil || tip.parts[partition] == nil {
		return
	}
	for _, b := range f.blocks {
		if b.ref.Number > r.Ancestor.Number {
			b.parts[partition] = nil
		}
	}
	f.partitions[partition].tip = r.Ancestor.Number
}

// read decodes a partition's share of one block.
func (f *Fold) read(timeMs uint64, s Share) (*blockShare, error) {
	p := &blockShare{txs: s.Txs}
	for logs := s.Logs; len(logs) > 0; {
		n := slices.IndexFunc(logs, func(l chain.Log) bool { return l.TxHash != logs[0].TxHash })
		if n < 0 {
			n = len(logs)
		}
		events, err := f.decoder.Transaction(logs[:n], timeMs)
		if err != nil {
			return nil, fmt.Errorf("block %d, transaction %s: %w", logs[0].Block, logs[0].TxHash, err)
		}
		for _, e := range Endings(events) {
			e.Tx.Hash = logs[0].TxHash
			p.endings = append(p.endings, e)
		}
		logs = logs[n:]
	}
	return p, nil
}

// add adds a partition's share to its block, unless it is there already.
func (f *Fold) add(partition int, ref chain.BlockRef, p *blockShare) *block {
	at := blockID{ref.Number, ref.Hash}
	b := f.blocks[at]
	if b == nil {
		b = &block{ref: ref, parts: make([]*blockShare, len(f.partitions))}
		f.blocks[at] = b
	}
	if b.parts[partition] == nil {
		b.parts[partition] = p
	}
	return b
}

// emit returns the executions of those of the blocks that all partitions have, in the chain's order.
func (f *Fold) emit(blocks []*block) (executions []Execution, err error) {
	for _, b := range blocks {
		if b.told || !f.complete(b) {
			continue
		}
		of, err := b.join()
		if err != nil {
			return nil, err
		}
		b.told, executions = true, append(executions, of...)
	}
	slices.SortFunc(executions, func(x, y Execution) int {
		return cmp.Or(cmp.Compare(x.Pos.Block, y.Pos.Block), cmp.Compare(x.Pos.Index, y.Pos.Index))
	})
	return executions, nil
}

// complete reports whether every partition has been read as far as a block.
func (f *Fold) complete(b *block) bool {
	for i, p := range b.parts {
		if p == nil && !slices.ContainsFunc(f.partitions[i].spans, func(s span) bool { return s.holds(b.ref.Number) }) {
			return false
		}
	}
	return true
}

// join joins a block's endings with its transactions.
func (b *block) join() (executions []Execution, err error) {
	txs := map[chain.Hash]chain.Tx{}
	for _, p := range b.parts {
		if p != nil {
			for _, tx := range p.txs {
				txs[tx.Hash] = tx
			}
		}
	}
	for _, p := range b.parts {
		if p == nil {
			continue
		}
		for _, e := range p.endings {
			tx, known := txs[e.Tx.Hash]
			if !known {
				return nil, fmt.Errorf("block %d %s: no partition has the record of transaction %s", b.ref.Number,
					b.ref.Hash, e.Tx.Hash)
			}
			e.Block, e.Tx = b.ref, tx
			executions = append(executions, e)
		}
	}
	return executions, nil
}

// advance notes how far a partition was read, and forgets blocks that no record will name again.
func (f *Fold) advance(partition int, number uint64) {
	f.partitions[partition].begun, f.partitions[partition].tip = true, number
	slowest := number
	for _, l := range f.partitions {
		if !l.begun {
			return
		}
		slowest = min(slowest, l.tip)
	}
	floor := slowest - min(slowest, retainedBlocks)
	if floor < f.forgottenBelow+retainedBlocks/4 {
		return
	}
	f.forgottenBelow = floor
	maps.DeleteFunc(f.blocks, func(at blockID, _ *block) bool { return at.number < floor })
	for i := range f.partitions {
		l := &f.partitions[i]
		l.spans = slices.DeleteFunc(l.spans, func(s span) bool { return s.last < floor })
	}
}

func (s span) holds(number uint64) bool { return s.first <= number && number <= s.last }

func only[T any](all []T, keep func(T) bool) (some []T) {
	for _, x := range all {
		if keep(x) {
			some = append(some, x)
		}
	}
	return some
}
