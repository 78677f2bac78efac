package scanner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/wire"
)

// content is what the topic says of one block.
type content struct {
	block    chain.BlockRef
	params   []wire.Param
	logs     []routedLog // in the order of their index
	txs      []chain.Tx  // in the order of theirs
	verified bool
}

// routedLog is a log and the key that says which partition it belongs to.
type routedLog struct {
	chain.Log
	key chain.Hash
}

// encoder makes a record of a message under a routing key.
type encoder func(key chain.Hash, m wire.Message) (wire.Record, error)

// batches makes the batch of each partition: PARAM and TX records in partition 0, each LOG in its own, BLOCK_END at the end of all.
func (c content) batches(partitions int, encode encoder) ([][]wire.Record, error) {
	batches := make([][]wire.Record, partitions)
	add := func(key chain.Hash, m wire.Message) error {
		record, err := encode(key, m)
		p := wire.Partition(key, partitions)
		batches[p] = append(batches[p], record)
		return err
	}
	for _, param := range c.params {
		if err := add(chain.Hash{}, param); err != nil {
			return nil, err
		}
	}
	for _, l := range c.logs {
		if err := add(l.key, wire.Log{Log: l.Log}); err != nil {
			return nil, err
		}
	}
	for _, tx := range c.txs {
		if err := add(chain.Hash{}, wire.Tx{Tx: tx}); err != nil {
			return nil, err
		}
	}
	for p, records := range batches {
		end, err := encode(chain.Hash{}, wire.BlockEnd{
			Block: c.block, Records: uint32(len(records)), Digest: wire.Digest(records), Verified: c.verified,
		})
		if err != nil {
			return nil, err
		}
		batches[p] = append(records, end)
	}
	return batches, nil
}

// sameLogs tells whether two lists hold the same logs of one block.
func sameLogs(a, b []chain.Log) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Index != b[i].Index || a[i].TxHash != b[i].TxHash || string(a[i].Data) != string(b[i].Data) {
			return false
		}
	}
	return true
}

// chosen returns the logs of receipts that a filter chooses, in order.
func chosen(receipts []evm.Receipt, filter evm.Filter) []chain.Log {
	var logs []chain.Log
	for _, r := range receipts {
		for _, l := range r.Logs {
			if filter.Matches(l) {
				logs = append(logs, l)
			}
		}
	}
	return logs
}
