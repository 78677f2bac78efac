package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/pkg/chain"
)

// Filter chooses logs: those of one of the addresses whose first topic is one of the topics. Neither list may be empty.
type Filter struct {
	Addresses []chain.Address
	Topics    []chain.Hash
}

// Matches reports whether the filter chooses a log.
func (f Filter) Matches(l chain.Log) bool {
	return slices.Contains(f.Addresses, l.Address) && len(l.Topics) > 0 && slices.Contains(f.Topics, l.Topics[0])
}

// Bloom is a block's filter of log addresses and topics.
type Bloom [types.BloomByteLength]byte

// MayMatch is false if a block's bloom proves that no log of the block is chosen.
func (f Filter) MayMatch(b Bloom) bool {
	bloom := types.Bloom(b)
	return slices.ContainsFunc(f.Addresses, func(a chain.Address) bool { return bloom.Test(a[:]) }) &&
		slices.ContainsFunc(f.Topics, func(t chain.Hash) bool { return bloom.Test(t[:]) })
}

// filterArg is the argument of eth_getLogs for the logs of one block.
type filterArg struct {
	BlockHash chain.Hash      `json:"blockHash"`
	Addresses []chain.Address `json:"address"`
	Topics    [][]chain.Hash  `json:"topics"`
}

// Logs returns the chosen logs of a block, by its hash, in ascending order of their index. The endpoint that announced
// the block is asked first: others may not have it yet. A node with a damaged log index may leave some out:
// completeness is shown by the block's bloom or by its receipts.
func (r Reader) Logs(ctx context.Context, block chain.BlockRef, f Filter) ([]chain.Log, error) {
	logs, from, err := ask(ctx, r, question[[]chain.Log]{
		method: methodLogs, args: []any{filterArg{block.Hash, f.Addresses, [][]chain.Hash{f.Topics}}},
		first: r.pool.memory.server(block.Hash, PartHeader), read: func(raw json.RawMessage) ([]chain.Log, error) {
			return readLogs(raw, f, block)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("asking for the logs of block %d: %w", block.Number, err)
	}
	r.pool.memory.serve(block.Hash, PartLogs, from)
	return logs, nil
}

// readLogs reads logs of a block that were asked for by a filter and makes sure that they are the block's, chosen by it
// and in the chain's order.
func readLogs(raw []byte, f Filter, block chain.BlockRef) ([]chain.Log, error) {
	replies, err := decodeLogs(raw)
	if err != nil {
		return nil, err
	}
	logs := make([]chain.Log, len(replies))
	for i, reply := range replies {
		logs[i] = reply.Log
		if err := checkLog(reply, block); err != nil {
			return nil, err
		}
		if !f.Matches(reply.Log) {
			return nil, lie("log %d of block %d was not asked for", reply.Index, reply.Block)
		}
		if i > 0 && !logs[i-1].Pos().Before(reply.Pos()) {
			return nil, lie("log %d of block %d comes after log %d of block %d", reply.Index, reply.Block,
				logs[i-1].Index, logs[i-1].Block)
		}
	}
	return logs, nil
}

func checkLog(r logReply, block chain.BlockRef) error {
	switch {
	case r.BlockHash != block.Hash || r.Block != block.Number:
		return lie("log %d says it stands in block %d %s", r.Index, r.Block, r.BlockHash)
	case r.removed:
		return lie("log %d says it was removed", r.Index)
	default:
		return nil
	}
}
