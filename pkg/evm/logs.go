package evm

import (
	"context"
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

// Matches tells whether the filter chooses a log.
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

// filterArg is the argument of eth_getLogs.
type filterArg struct {
	BlockHash chain.Hash      `json:"blockHash"`
	Addresses []chain.Address `json:"address"`
	Topics    [][]chain.Hash  `json:"topics"`
}

// logReply is a log as nodes show it.
type logReply struct {
	Address   chain.Address `json:"address"`
	Topics    []chain.Hash  `json:"topics"`
	Data      hexBytes      `json:"data"`
	Block     hexNumber     `json:"blockNumber"`
	BlockHash chain.Hash    `json:"blockHash"`
	TxHash    chain.Hash    `json:"transactionHash"`
	TxIndex   hexNumber     `json:"transactionIndex"`
	Index     hexNumber     `json:"logIndex"`
	Removed   bool          `json:"removed"`
}

func (r logReply) log() chain.Log {
	return chain.Log{
		Address: r.Address, Topics: r.Topics, Data: r.Data, Block: uint64(r.Block), BlockHash: r.BlockHash, TxHash: r.TxHash,
		TxIndex: uint32(r.TxIndex), Index: uint32(r.Index),
	}
}

// Logs returns the chosen logs of a block, by its hash, in ascending order of their index. A node with a damaged log index may leave some out:
// completeness is shown by the block's bloom or by its receipts.
func (c *Client) Logs(ctx context.Context, block chain.BlockRef, f Filter) ([]chain.Log, error) {
	var replies []logReply
	arg := filterArg{BlockHash: block.Hash, Addresses: f.Addresses, Topics: [][]chain.Hash{f.Topics}}
	if err := c.ask(ctx, &replies, "eth_getLogs", arg); err != nil {
		return nil, fmt.Errorf("asking for the logs of block %d: %w", block.Number, err)
	}
	logs := make([]chain.Log, len(replies))
	for i, reply := range replies {
		logs[i] = reply.log()
		if err := checkLog(reply, block); err != nil {
			return nil, fmt.Errorf("reading the logs of block %d: %w", block.Number, err)
		}
		if !f.Matches(logs[i]) {
			return nil, fmt.Errorf("reading the logs of block %d: log %d was not asked for", block.Number, logs[i].Index)
		}
		if i > 0 && logs[i].Index <= logs[i-1].Index {
			return nil, fmt.Errorf("reading the logs of block %d: log %d comes after log %d", block.Number, logs[i].Index, logs[i-1].Index)
		}
	}
	return logs, nil
}

func checkLog(r logReply, block chain.BlockRef) error {
	switch {
	case r.BlockHash != block.Hash || uint64(r.Block) != block.Number:
		return malformed("log %d says it stands in block %d %s", r.Index, r.Block, r.BlockHash)
	case r.Removed:
		return malformed("log %d says it was removed", r.Index)
	default:
		return nil
	}
}
