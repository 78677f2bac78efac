package chaos

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/wire"
)

// blockRecords are the records of a block on the log topic, over all partitions.
type blockRecords struct {
	block chain.BlockRef
	parts int // partitions that have it
	logs  map[uint32]chain.Log
}

// audit compares every block that all partitions have with the block's proven receipts, whatever became of it later,
// and returns how many it compared. Blocks that the node has forgotten with their branch are left out.
func (r *rig) audit() (compared int) {
	r.t.Helper()
	all := map[chain.Hash]*blockRecords{}
	for p := range partitions {
		if err := gather(all, r.records(wire.LogTopic(r.chainID), p)); err != nil {
			r.t.Fatalf("partition %d: %v", p, err)
		}
	}
	for hash, s := range all {
		if s.parts < partitions {
			continue
		}
		proven, err := r.twin.provenLogs(r.t.Context(), hash)
		switch {
		case evm.NotFound(err):
		case err != nil:
			r.t.Fatal(err)
		default:
			compared++
			if err := s.differs(proven); err != nil {
				r.t.Errorf("block %d %s: %v", s.block.Number, hash, err)
			}
		}
	}
	return compared
}

// gather adds the records of one partition.
func gather(all map[chain.Hash]*blockRecords, records []wire.Record) error {
	of := func(block chain.BlockRef) *blockRecords {
		if all[block.Hash] == nil {
			all[block.Hash] = &blockRecords{block: block, logs: map[uint32]chain.Log{}}
		}
		return all[block.Hash]
	}
	var open []chain.Log
	for _, record := range records {
		m, _, err := wire.Decode(record)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case wire.Log:
			open = append(open, m.Log)
		case wire.BlockEnd:
			s := of(m.Block)
			for _, l := range open {
				s.logs[l.Index] = l
			}
			s.parts++
			open = nil
		case wire.RangeEnd:
			for _, b := range append(slices.Clone(m.Blocks), m.Last) {
				of(b).parts += partitions // a partition without records of a block does not name it
			}
			for _, l := range open {
				of(chain.BlockRef{Number: l.Block, Hash: l.BlockHash}).logs[l.Index] = l
			}
			open = nil
		}
	}
	return nil
}

// differs says what is wrong with a block's logs.
func (s *blockRecords) differs(proven []chain.Log) error {
	if len(s.logs) != len(proven) {
		return fmt.Errorf("%d logs, and its receipts prove %d", len(s.logs), len(proven))
	}
	for i, index := range slices.Sorted(maps.Keys(s.logs)) {
		if l := s.logs[index]; index != proven[i].Index || !slices.Equal(l.Topics, proven[i].Topics) ||
			!bytes.Equal(l.Data, proven[i].Data) {
			return fmt.Errorf("log %d is not the one its receipts prove", index)
		}
	}
	return nil
}

// provenLogs are the logs of a block that the scanner publishes, in order.
func (w *twin) provenLogs(ctx context.Context, hash chain.Hash) ([]chain.Log, error) {
	block, err := w.node.Block(ctx, hash)
	if err != nil {
		return nil, err
	}
	receipts, err := w.receipts(ctx, block)
	return w.filter.Choose(receipts...), err
}
