package scanner

import (
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// history is what the topic holds of a range of finalized blocks.
type history struct {
	before chain.BlockRef   // number and hash only
	refs   []chain.BlockRef // every block of the range
	blocks []content        // those of which there is something to say
}

func (h history) last() chain.BlockRef { return h.refs[len(h.refs)-1] }

// batches makes the batch of each partition: the records of the blocks one after the other, and RANGE_END behind them.
func (h history) batches(partitions int, encode encoder) ([][]wire.Record, error) {
	batches, ends := make([][]wire.Record, partitions), make([]wire.RangeEnd, partitions)
	for _, c := range h.blocks {
		before := lengths(batches)
		if err := c.spread(batches, encode); err != nil {
			return nil, err
		}
		for p, after := range lengths(batches) {
			if after > before[p] {
				ends[p].Blocks = append(ends[p].Blocks, c.block)
			}
		}
	}
	for p, records := range batches {
		end := ends[p]
		end.Before, end.Last = h.before, h.last()
		end.Records, end.Digest = uint32(len(records)), wire.Digest(records)
		record, err := encode(chain.Hash{}, end)
		if err != nil {
			return nil, err
		}
		batches[p] = append(records, record)
	}
	return batches, nil
}

func lengths(batches [][]wire.Record) []int {
	counts := make([]int, len(batches))
	for p := range batches {
		counts[p] = len(batches[p])
	}
	return counts
}

// split halves a range of two blocks or more.
func (h history) split() (history, history) {
	middle := len(h.refs) / 2
	border := h.refs[middle-1]
	at, _ := slices.BinarySearchFunc(h.blocks, border.Number+1, func(c content, n uint64) int {
		return int(c.block.Number) - int(n)
	})
	left := history{before: h.before, refs: h.refs[:middle], blocks: h.blocks[:at]}
	right := history{before: chain.BlockRef{Number: border.Number, Hash: border.Hash}, refs: h.refs[middle:],
		blocks: h.blocks[at:]}
	return left, right
}

// piece is a range and what each partition gets of it: one batch, or several where a single block does not fit into
// one.
type piece struct {
	history
	batches [][][]wire.Record
}

// pieces cuts a range until no batch has more than so many bytes.
func (h history) pieces(partitions, most int, encode encoder) ([]piece, error) {
	batches, err := h.batches(partitions, encode)
	if err != nil {
		return nil, err
	}
	fits := !slices.ContainsFunc(batches, func(records []wire.Record) bool { return size(records) > most })
	if fits || len(h.refs) == 1 {
		parts, err := splitAll(batches, h.last(), most, encode)
		return []piece{{h, parts}}, err
	}
	left, right := h.split()
	first, err := left.pieces(partitions, most, encode)
	if err != nil {
		return nil, err
	}
	second, err := right.pieces(partitions, most, encode)
	return append(first, second...), err
}
