package chaos

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/wire"
)

// blockRecords are the records of a block under one attempt on the log topic, over all partitions.
type blockRecords struct {
	block    chain.BlockRef
	verified int // partitions that call it proven
	logs     map[uint32]chain.Log
}

// blockID identifies a block on the topic: it may come again under a higher attempt.
type blockID struct {
	hash    chain.Hash
	attempt uint32
}

// audit compares every block that the topic calls verified with the block's proven receipts, whatever became of it
// later, and returns how many it compared. Blocks that the node has forgotten with their branch are left out.
func (r *rig) audit() (compared int) {
	r.t.Helper()
	all := map[blockID]*blockRecords{}
	for p := range partitions {
		if err := gather(all, r.records(wire.LogTopic(r.chainID), p)); err != nil {
			r.t.Fatalf("partition %d: %v", p, err)
		}
	}
	for key, s := range all {
		if s.verified < partitions {
			continue
		}
		proven, err := r.twin.provenLogs(r.t.Context(), key.hash)
		switch {
		case evm.NotFound(err):
		case err != nil:
			r.t.Fatal(err)
		default:
			compared++
			if err := s.differs(proven); err != nil {
				r.t.Errorf("block %d %s, attempt %d, is called verified: %v", s.block.Number, key.hash, key.attempt,
					err)
			}
		}
	}
	return compared
}

// gather adds the records of one partition. Ranges are of history, which nothing can follow under another attempt.
func gather(all map[blockID]*blockRecords, records []wire.Record) error {
	of := func(key blockID, block chain.BlockRef) *blockRecords {
		if all[key] == nil {
			all[key] = &blockRecords{block: block, logs: map[uint32]chain.Log{}}
		}
		return all[key]
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
			s := of(blockID{m.Block.Hash, m.Attempt}, m.Block)
			for _, l := range open {
				s.logs[l.Index] = l
			}
			if m.Verified {
				s.verified++
			}
			open = nil
		case wire.RangeEnd:
			for _, b := range append(slices.Clone(m.Blocks), m.Last) {
				s := of(blockID{b.Hash, 0}, b)
				if m.Verified {
					s.verified += partitions // a partition without records of a block does not name it
				}
			}
			for _, l := range open {
				of(blockID{l.BlockHash, 0}, chain.BlockRef{Number: l.Block, Hash: l.BlockHash}).logs[l.Index] = l
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
func (w *twin) provenLogs(ctx context.Context, hash chain.Hash) (logs []chain.Log, err error) {
	block, err := w.node.Block(ctx, hash)
	if err != nil {
		return nil, err
	}
	receipts, err := w.receipts(ctx, block)
	for _, r := range receipts {
		logs = append(logs, w.chosen(r)...)
	}
	return logs, err
}
