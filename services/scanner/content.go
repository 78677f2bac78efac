package scanner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/wire"
)

// content is what the topic holds of one block.
type content struct {
	block  chain.BlockRef
	params []wire.Param
	audits []wire.Audit
	logs   []routedLog // in the order of their index
	txs    []chain.Tx  // in the order of theirs
}

// routedLog is a log and its key, which decides the partition.
type routedLog struct {
	chain.Log
	key chain.Hash
}

// encoder makes a record of a message under a routing key.
type encoder func(key chain.Hash, m wire.Message) (wire.Record, error)

// spread appends the block's records to what each partition gets: PARAMs, and the logs of [gmx.Everywhere], to all
// partitions, AUDITs to that of their market, every other log to that of its key, TX records to partition 0.
func (c content) spread(batches [][]wire.Record, encode encoder) error {
	for _, param := range c.params {
		if err := toAll(batches, encode, chain.Hash{}, param); err != nil {
			return err
		}
	}
	for _, a := range c.audits {
		if err := toOne(batches, encode, a.Market.Hash(), a); err != nil {
			return err
		}
	}
	for _, l := range c.logs {
		var err error
		if gmx.Everywhere(l.Log) {
			err = toAll(batches, encode, l.key, wire.Log{Log: l.Log})
		} else {
			err = toOne(batches, encode, l.key, wire.Log{Log: l.Log})
		}
		if err != nil {
			return err
		}
	}
	for _, tx := range c.txs {
		if err := toOne(batches, encode, chain.Hash{}, wire.Tx{Tx: tx}); err != nil {
			return err
		}
	}
	return nil
}

func toOne(batches [][]wire.Record, encode encoder, key chain.Hash, m wire.Message) error {
	record, err := encode(key, m)
	p := wire.Partition(key, len(batches))
	batches[p] = append(batches[p], record)
	return err
}

func toAll(batches [][]wire.Record, encode encoder, key chain.Hash, m wire.Message) error {
	record, err := encode(key, m)
	for p := range batches {
		batches[p] = append(batches[p], record)
	}
	return err
}

// batches makes the batch of each partition: its records, and BLOCK_END behind them. Depths is by partition how far
// below the block lies what its end calls final.
func (c content) batches(depths []uint32, encode encoder) ([][]wire.Record, error) {
	batches := make([][]wire.Record, len(depths))
	if err := c.spread(batches, encode); err != nil {
		return nil, err
	}
	for p, depth := range depths {
		records := batches[p]
		end, err := encode(chain.Hash{}, wire.BlockEnd{
			Block: c.block, Records: uint32(len(records)), Digest: wire.Digest(records), FinalDepth: depth,
		})
		if err != nil {
			return nil, err
		}
		batches[p] = append(records, end)
	}
	return batches, nil
}
