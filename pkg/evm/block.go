package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"perpkeeper/pkg/chain"
)

// Header is what a block's hash commits to, as far as it is needed. The hash has been recomputed.
type Header struct {
	chain.BlockRef
	// Bloom is the filter of the block's log addresses and topics; see Filter.MayMatch.
	Bloom Bloom
	// ReceiptsRoot is what the block's receipts hash to.
	ReceiptsRoot chain.Hash
	// TransactionsRoot is what the block's transactions hash to.
	TransactionsRoot chain.Hash
	// GasLimit is the gas of the block; see CallGas for what calls may use of it.
	GasLimit uint64
}

// Block is a block whose hash has been recomputed from its header.
type Block struct {
	Header
	// Txs are the block's transactions, in order, as an endpoint shows them; see Reader.Verified. OK, GasUsed and
	// GasPrice are not set: only receipts know them.
	Txs []chain.Tx
	// Source is the endpoint that gave it.
	Source Source

	shown [][]byte       // Txs as they stand in the endpoint's document
	early *earlyReceipts // nil where the receipts were not asked for with it
}

// hexNumber is a number as JSON-RPC writes it.
type hexNumber = hexutil.Uint64

// Head returns the newest block of the best endpoint that names one which can be the chain's; see agreement.Heads.
func (r Reader) Head(ctx context.Context) (chain.BlockRef, error) {
	for {
		block, from, err := ask(ctx, r, tagged("latest"))
		if err != nil {
			return chain.BlockRef{}, fmt.Errorf("asking for the newest block: %w", err)
		}
		if r.pool.sawHead(from, block) {
			r.pool.memory.serve(block.Hash, from)
			return block, nil
		}
		r.without = append(slices.Clone(r.without), from.name)
	}
}

// Finalized returns the newest block an endpoint calls final. It may be older than what was returned before: nodes
// forget it over a restart, and another node may answer. It is a hint: see Client.Finalized.
func (r Reader) Finalized(ctx context.Context) (chain.BlockRef, error) {
	block, _, err := ask(ctx, r, tagged("finalized"))
	if err != nil {
		return chain.BlockRef{}, fmt.Errorf("asking for the finalized block: %w", err)
	}
	return block, nil
}

// tagged asks for the header of a block by its tag.
func tagged(tag string) question[chain.BlockRef] {
	purpose := map[string]Purpose{"latest": ForHeads, "finalized": ForFinality}[tag]
	return question[chain.BlockRef]{method: methodBlockAt, args: []any{tag, false}, purpose: purpose,
		read: func(raw json.RawMessage) (chain.BlockRef, error) {
			block, err := readBlock(raw, "the "+tag+" block", func(Block) bool { return true })
			return block.BlockRef, err
		}}
}

// headerAt asks for the header of a number.
func headerAt(number uint64) question[Header] {
	return bare(methodBlockAt, hexNumber(number), fmt.Sprintf("block %d", number),
		func(b Block) bool { return b.Number == number })
}

// bare asks for a block without its transactions.
func bare(method string, which any, what string, wanted func(Block) bool) question[Header] {
	return question[Header]{method: method, args: []any{which, false}, read: func(raw json.RawMessage) (Header, error) {
		block, err := readBlock(raw, what, wanted)
		return block.Header, err
	}}
}

// Header returns the header of a block by its hash, on whatever branch it is, from the endpoint that announced it or
// else from the first that has it. NotFound(err) where none has it.
func (r Reader) Header(ctx context.Context, hash chain.Hash) (Header, error) {
	q := bare(methodBlock, hash, "block "+hash.Hex(), func(b Block) bool { return b.Hash == hash })
	q.first = r.pool.memory.server(hash)
	header, from, err := ask(ctx, r, q)
	if err != nil {
		return Header{}, fmt.Errorf("asking for the header of block %s: %w", hash, err)
	}
	r.pool.memory.serve(hash, from)
	return header, nil
}

// HeaderAt returns the header of the block of a number on a node's chain of this moment. NotFound(err) where every
// endpoint's chain is shorter.
func (r Reader) HeaderAt(ctx context.Context, number uint64) (Header, error) {
	header, from, err := ask(ctx, r, headerAt(number))
	if err != nil {
		return Header{}, fmt.Errorf("asking for the header of block %d: %w", number, err)
	}
	r.pool.memory.serve(header.Hash, from)
	return header, nil
}

// HashAt returns the hash of the block of a number on a node's chain of this moment. NotFound(err) where every
// endpoint's chain is shorter.
func (r Reader) HashAt(ctx context.Context, number uint64) (chain.Hash, error) {
	header, err := r.HeaderAt(ctx, number)
	return header.Hash, err
}

// Block returns a block by its hash, on whatever branch it is, from the endpoint that announced it or else from the
// first that has it. NotFound(err) where none has it. Its transactions are the endpoint's word; see Reader.Verified.
func (r Reader) Block(ctx context.Context, hash chain.Hash) (Block, error) {
	return r.blockFrom(ctx, hash, r.pool.memory.server(hash))
}

// blockFrom is Block, asked for first of an endpoint unless that is nil.
func (r Reader) blockFrom(ctx context.Context, hash chain.Hash, first *endpoint) (Block, error) {
	what := "block " + hash.Hex()
	q := wholeBlock(methodBlock, hash, what, func(b Block) bool { return b.Hash == hash })
	q.first = first
	return r.block(ctx, what, q)
}

// BlockWithReceipts is Block for a block whose receipts are wanted too: they are asked for at the same time, and what
// Receipts says of the returned block has been on its way since.
func (r Reader) BlockWithReceipts(ctx context.Context, hash chain.Hash) (Block, error) {
	first := r.pool.memory.server(hash)
	if first == nil {
		first = r.idlest(ForReceipts)
	}
	early := r.askEarly(ctx, hash, first)
	block, err := r.blockFrom(ctx, hash, first)
	if err != nil {
		early.drop()
		return Block{}, err
	}
	block.early = early
	return block, nil
}

// BlockAt returns the block of a number on a node's chain of this moment. NotFound(err) where every endpoint's chain is
// shorter.
func (r Reader) BlockAt(ctx context.Context, number uint64) (Block, error) {
	what := fmt.Sprintf("block %d", number)
	return r.block(ctx, what, wholeBlock(methodBlockAt, hexNumber(number), what,
		func(b Block) bool { return b.Number == number }))
}

// wholeBlock asks for a block with its transactions.
func wholeBlock(method string, which any, what string, wanted func(Block) bool) question[Block] {
	return question[Block]{method: method, args: []any{which, true}, purpose: ForBodies,
		read: func(raw json.RawMessage) (Block, error) {
			block, err := readBlock(raw, what, wanted)
			if err == nil {
				err = block.checkBody()
			}
			return block, err
		}}
}

func (r Reader) block(ctx context.Context, what string, q question[Block]) (Block, error) {
	block, from, err := ask(ctx, r, q)
	if err != nil {
		return Block{}, fmt.Errorf("asking for %s: %w", what, err)
	}
	r.pool.memory.serve(block.Hash, from)
	block.Source = from.name
	return block, nil
}

// readBlock reads a block and makes sure that it is the one that was asked for.
func readBlock(raw []byte, what string, wanted func(Block) bool) (Block, error) {
	if isNull(raw) {
		return Block{}, &notFoundError{what}
	}
	block, err := decodeBlock(raw)
	if err == nil && !wanted(block) {
		return Block{}, lie("block %d %s for %s", block.Number, block.Hash, what)
	}
	return block, err
}

func isNull(raw []byte) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }
