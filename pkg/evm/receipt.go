package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
)

// hexBytes are bytes as JSON-RPC writes them.
type hexBytes = hexutil.Bytes

// Receipt is a mined transaction and the logs it left, in order.
type Receipt struct {
	chain.Tx
	Logs []chain.Log
}

// receiptReply is a receipt as nodes show it.
type receiptReply struct {
	Type          hexNumber      `json:"type"`
	Status        hexNumber      `json:"status"`
	CumulativeGas hexNumber      `json:"cumulativeGasUsed"`
	GasUsed       hexNumber      `json:"gasUsed"`
	GasPrice      *hexutil.Big   `json:"effectiveGasPrice"`
	TxHash        chain.Hash     `json:"transactionHash"`
	Index         hexNumber      `json:"transactionIndex"`
	Block         hexNumber      `json:"blockNumber"`
	BlockHash     chain.Hash     `json:"blockHash"`
	From          chain.Address  `json:"from"`
	To            *chain.Address `json:"to"`
	Logs          []logReply     `json:"logs"`
}

// Receipts returns the receipts of a block's transactions, in order. Proven says that they hash to the header's receipts root: then logs,
// statuses and gas are exactly those of the block. They are not proven if the node's answer is wrong, or has a kind of transaction that this
// build cannot encode.
func (c *Client) Receipts(ctx context.Context, block Block) (receipts []Receipt, proven bool, err error) {
	var replies []receiptReply
	if err := c.ask(ctx, &replies, "eth_getBlockReceipts", block.Hash); err != nil {
		return nil, false, fmt.Errorf("asking for the receipts of block %d: %w", block.Number, err)
	}
	if replies == nil {
		return nil, false, &notFoundError{fmt.Sprintf("block %d with its receipts", block.Number)}
	}
	if len(replies) != len(block.Txs) {
		return nil, false, fmt.Errorf("reading the receipts of block %d: %d receipts for %d transactions", block.Number, len(replies), len(block.Txs))
	}
	nextLog, gasBefore := uint32(0), uint64(0)
	for i, reply := range replies {
		if err := reply.check(block, i, nextLog); err != nil {
			return nil, false, fmt.Errorf("reading the receipts of block %d: %w", block.Number, err)
		}
		reply.GasUsed = reply.CumulativeGas - hexNumber(gasBefore) // only the sum is covered by the root
		receipt, err := reply.receipt(block.Txs[i].Nonce)
		if err != nil {
			return nil, false, fmt.Errorf("reading the receipts of block %d: %w", block.Number, err)
		}
		receipts = append(receipts, receipt)
		nextLog, gasBefore = nextLog+uint32(len(reply.Logs)), uint64(reply.CumulativeGas)
	}
	return receipts, receiptsRoot(replies) == block.ReceiptsRoot, nil
}

// check compares the i-th receipt with the block it was asked for.
func (r receiptReply) check(block Block, i int, firstLog uint32) error {
	if r.BlockHash != block.Hash || int(r.Index) != i || r.TxHash != block.Txs[i].Hash {
		return malformed("receipt %d is of transaction %s, number %d of block %s", i, r.TxHash, r.Index, r.BlockHash)
	}
	for k, log := range r.Logs {
		if err := checkLog(log, block.BlockRef); err != nil {
			return err
		}
		if uint32(log.Index) != firstLog+uint32(k) || log.TxHash != r.TxHash || log.TxIndex != r.Index {
			return malformed("log %d stands at place %d of the block, in transaction %s", log.Index, firstLog+uint32(k), r.TxHash)
		}
	}
	return nil
}

func (r receiptReply) receipt(nonce uint64) (Receipt, error) {
	price := (*big.Int)(r.GasPrice)
	if price == nil || !price.IsUint64() {
		return Receipt{}, malformed("transaction %s paid %v wei per gas", r.TxHash, price)
	}
	out := Receipt{Tx: chain.Tx{
		Hash: r.TxHash, From: r.From, Nonce: nonce, Block: uint64(r.Block), BlockHash: r.BlockHash, Index: uint32(r.Index),
		OK: r.Status == 1, GasUsed: uint64(r.GasUsed), GasPrice: price.Uint64(),
	}}
	if r.To != nil {
		out.To = *r.To
	}
	for _, log := range r.Logs {
		out.Logs = append(out.Logs, log.log())
	}
	return out, nil
}

// receiptsRoot is what the header commits to: the root of the trie of the encoded receipts.
func receiptsRoot(replies []receiptReply) chain.Hash {
	receipts := make(types.Receipts, len(replies))
	for i, r := range replies {
		receipts[i] = &types.Receipt{Type: uint8(r.Type), Status: uint64(r.Status), CumulativeGasUsed: uint64(r.CumulativeGas)}
		for _, log := range r.Logs {
			receipts[i].Logs = append(receipts[i].Logs, log.consensus())
		}
		receipts[i].Bloom = types.CreateBloom(receipts[i])
	}
	return chain.Hash(types.DeriveSha(receipts, trie.NewListHasher()))
}

// consensus is the part of a log that receipts commit to.
func (r logReply) consensus() *types.Log {
	log := &types.Log{Address: common.Address(r.Address), Data: r.Data}
	for _, t := range r.Topics {
		log.Topics = append(log.Topics, common.Hash(t))
	}
	return log
}

// Receipt returns a mined transaction with its logs, on the chain of this moment, or nil if the node knows none: the transaction waits, is
// unknown, or stands in a block that was replaced. Nothing here is proven.
func (c *Client) Receipt(ctx context.Context, tx chain.Hash) (*Receipt, error) {
	var reply *receiptReply
	if err := c.ask(ctx, &reply, "eth_getTransactionReceipt", tx); err != nil {
		return nil, fmt.Errorf("asking for the receipt of %s: %w", tx, err)
	}
	if reply == nil {
		return nil, nil //nolint:nilnil // An unmined transaction is no error; the documentation says so.
	}
	sent, err := c.minedTx(ctx, tx)
	if err != nil {
		return nil, err
	}
	if reply.TxHash != tx || sent == nil || *sent.BlockHash != reply.BlockHash {
		return nil, fmt.Errorf("asking for the receipt of %s: the chain changed meanwhile", tx)
	}
	receipt, err := reply.receipt(uint64(sent.Nonce))
	if err != nil {
		return nil, fmt.Errorf("reading the receipt of %s: %w", tx, err)
	}
	return &receipt, nil
}

// minedTx returns a transaction that stands in a block, or nil.
func (c *Client) minedTx(ctx context.Context, tx chain.Hash) (*txReply, error) {
	var raw json.RawMessage
	if err := c.ask(ctx, &raw, "eth_getTransactionByHash", tx); err != nil {
		return nil, fmt.Errorf("asking for transaction %s: %w", tx, err)
	}
	var reply *txReply
	if err := gojson.Unmarshal(raw, &reply); err != nil {
		return nil, fmt.Errorf("reading transaction %s: %w", tx, err)
	}
	if reply == nil || reply.BlockHash == nil {
		return nil, nil //nolint:nilnil // A transaction that waits is no error.
	}
	return reply, nil
}
