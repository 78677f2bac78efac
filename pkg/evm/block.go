package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
)

// Block is a block whose hash has been recomputed from its header.
type Block struct {
	chain.BlockRef
	// Bloom is the header's filter of log addresses and topics; see Filter.MayMatch.
	Bloom Bloom
	// ReceiptsRoot is what the block's receipts hash to.
	ReceiptsRoot chain.Hash
	// Txs are the block's transactions, in order. OK, GasUsed and GasPrice are not set: only receipts know them.
	Txs []chain.Tx
}

// hexNumber is a number as JSON-RPC writes it.
type hexNumber = hexutil.Uint64

// Head returns the newest block of the preferred endpoint.
func (c *Client) Head(ctx context.Context) (chain.BlockRef, error) { return c.tagged(ctx, "latest") }

// Finalized returns the newest block the endpoint calls final. It may be older than what was returned before: nodes forget it over a restart.
func (c *Client) Finalized(ctx context.Context) (chain.BlockRef, error) {
	return c.tagged(ctx, "finalized")
}

func (c *Client) tagged(ctx context.Context, tag string) (chain.BlockRef, error) {
	block, err := c.block(ctx, "the "+tag+" block", "eth_getBlockByNumber", tag, false)
	return block.BlockRef, err
}

// Block returns a block by its hash, on whatever branch it is, from the first endpoint that has it: reads then stay with that one. NotFound(err)
// where none has it.
func (c *Client) Block(ctx context.Context, hash chain.Hash) (Block, error) {
	block, err := c.block(ctx, "block "+hash.Hex(), "eth_getBlockByHash", hash, true)
	if err == nil && block.Hash != hash {
		return Block{}, fmt.Errorf("asking for block %s: the node gave %s", hash, block.Hash)
	}
	return block, err
}

// BlockAt returns the block of a number on a node's chain of this moment. NotFound(err) where every endpoint's chain is shorter.
func (c *Client) BlockAt(ctx context.Context, number uint64) (Block, error) {
	block, err := c.block(ctx, fmt.Sprintf("block %d", number), "eth_getBlockByNumber", hexNumber(number), true)
	if err == nil && block.Number != number {
		return Block{}, fmt.Errorf("asking for block %d: the node gave %d", number, block.Number)
	}
	return block, err
}

func (c *Client) block(ctx context.Context, what, method string, which any, full bool) (Block, error) {
	var raw json.RawMessage
	found := func() bool { return !isNull(raw) }
	if err := c.askUntil(ctx, found, &raw, method, which, full); err != nil {
		return Block{}, fmt.Errorf("asking for %s: %w", what, err)
	}
	if isNull(raw) {
		return Block{}, &notFoundError{what}
	}
	block, err := decodeBlock(raw)
	if err != nil {
		return Block{}, fmt.Errorf("reading %s: %w", what, err)
	}
	return block, nil
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// blockReply is what a block has beside its header.
type blockReply struct {
	Hash           chain.Hash        `json:"hash"`
	MilliTimestamp *hexNumber        `json:"milliTimestamp"`
	Transactions   []json.RawMessage `json:"transactions"` // objects, or hashes where those were asked for; none in an announced head
}

// decodeBlock reads a block and recomputes its hash. Transactions that are mere hashes are left out.
func decodeBlock(raw []byte) (Block, error) {
	var header types.Header
	if err := gojson.Unmarshal(raw, &header); err != nil {
		return Block{}, malformed("reading the header: %v", err)
	}
	var reply blockReply
	if err := gojson.Unmarshal(raw, &reply); err != nil {
		return Block{}, malformed("reading the block: %v", err)
	}
	if !header.Number.IsUint64() {
		return Block{}, malformed("block number %s", header.Number)
	}
	hash := chain.Hash(header.Hash())
	if hash != reply.Hash {
		return Block{}, malformed("the header hashes to %s, the node says %s", hash, reply.Hash)
	}
	block := Block{
		BlockRef: chain.BlockRef{
			Number: header.Number.Uint64(), Hash: hash, Parent: chain.Hash(header.ParentHash), TimeMs: timeMs(header.Time, reply.MilliTimestamp),
		},
		Bloom:        Bloom(header.Bloom),
		ReceiptsRoot: chain.Hash(header.ReceiptHash),
	}
	txs, err := decodeTxs(reply.Transactions, block.BlockRef)
	block.Txs = txs
	return block, err
}

// timeMs takes the node's milliseconds if they lie within the header's second, which the hash covers.
func timeMs(seconds uint64, milli *hexNumber) uint64 {
	if milli != nil && uint64(*milli)/1000 == seconds {
		return uint64(*milli)
	}
	return seconds * 1000
}

// txReply is a transaction as blocks and look-ups by hash show it.
type txReply struct {
	Hash      chain.Hash     `json:"hash"`
	From      chain.Address  `json:"from"`
	To        *chain.Address `json:"to"`
	Nonce     hexNumber      `json:"nonce"`
	BlockHash *chain.Hash    `json:"blockHash"` // null while the transaction waits
	Index     *hexNumber     `json:"transactionIndex"`
}

func decodeTxs(raws []json.RawMessage, in chain.BlockRef) ([]chain.Tx, error) {
	var txs []chain.Tx
	for i, raw := range raws {
		if bytes.HasPrefix(raw, []byte(`"`)) {
			continue
		}
		var reply txReply
		if err := gojson.Unmarshal(raw, &reply); err != nil {
			return nil, malformed("reading transaction %d: %v", i, err)
		}
		if reply.BlockHash == nil || *reply.BlockHash != in.Hash || reply.Index == nil || int(*reply.Index) != i {
			return nil, malformed("transaction %d of block %s says it stands elsewhere", i, in.Hash)
		}
		txs = append(txs, reply.tx(in.Number))
	}
	return txs, nil
}

// tx is a transaction that stands in a block of that number.
func (r txReply) tx(number uint64) chain.Tx {
	tx := chain.Tx{Hash: r.Hash, From: r.From, Nonce: uint64(r.Nonce), Block: number, BlockHash: *r.BlockHash, Index: uint32(*r.Index)}
	if r.To != nil {
		tx.To = *r.To
	}
	return tx
}
