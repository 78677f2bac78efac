package scanner

import (
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
