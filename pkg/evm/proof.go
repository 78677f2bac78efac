package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"

	"perpkeeper/pkg/chain"
)

// Receipt returns a mined transaction with its logs, on the chain of this moment, or nil if no endpoint that answers
// knows one: the transaction waits, is unknown, or stands in a block that was replaced.
//
// An endpoint's answer is compared with the block: status, gas and logs, and the transaction's place, are those that
// the block's roots commit to, and an endpoint whose answer differs is excluded and another one asked. Not proven is
// that the block is on the chain: for that two answers have to agree. Where no endpoint serves the receipts of blocks,
// or the block has a type of transaction that this build does not know, it is as the endpoint gave it.
func (r Reader) Receipt(ctx context.Context, tx chain.Hash) (*Receipt, error) {
	var lies []error
	for {
		claimed, from, err := r.claimed(ctx, tx)
		switch {
		case NotFound(err):
			return nil, nil //nolint:nilnil // An unmined transaction is no error; the documentation says so.
		case err != nil:
			return nil, fmt.Errorf("asking for the receipt of %s: %w", tx, errors.Join(append(lies, err)...))
		}
		receipt, err := r.prove(ctx, claimed)
		lied, is := errors.AsType[*lieError](err)
		if _, others := errors.AsType[*callError](err); !is || others { // it is not this receipt that is wrong
			return receipt, err
		}
		lies = append(lies, from.failed(ctx, methodReceipt, lied, 0))
		r.without = append(slices.Clone(r.without), from.name)
	}
}

// claimed asks for a receipt and believes it.
func (r Reader) claimed(ctx context.Context, tx chain.Hash) (*receiptReply, *endpoint, error) {
	return ask(ctx, r, question[*receiptReply]{
		method: methodReceipt, args: []any{tx}, read: func(raw json.RawMessage) (*receiptReply, error) {
			reply, err := decodeReceipt(raw)
			switch {
			case err == nil && reply == nil:
				return nil, &notFoundError{"the receipt of " + tx.Hex()}
			case err == nil && reply.txHash != tx:
				return nil, lie("the receipt of %s for the one of %s", reply.txHash, tx)
			default:
				return reply, err
			}
		},
	})
}

// prove returns the receipt that the block has in the place of the one that was claimed, or a lieError where the block
// has another.
func (r Reader) prove(ctx context.Context, claimed *receiptReply) (*Receipt, error) {
	held, err := r.pool.proofs.of(claimed.blockHash, func() (*proof, error) { return r.proof(ctx, claimed.blockHash) })
	if err != nil {
		return nil, err
	}
	at := int(claimed.index)
	if held.block.Number != claimed.block || at >= len(held.block.Txs) || held.block.Txs[at].Hash != claimed.txHash {
		return nil, r.misfit(&held.block, "block %d %s has no transaction %s in place %d", claimed.block,
			claimed.blockHash, claimed.txHash, at)
	}
	if held.receipts == nil {
		receipt := claimed.receipt(held.block.Txs[at].Nonce)
		return &receipt, nil
	}
	if truth := held.receipts[at]; truth.OK != (claimed.status == 1) || len(truth.Logs) != len(claimed.logs) {
		return nil, lie("the receipt of %s is not the one that block %d %s has", claimed.txHash, claimed.block,
			claimed.blockHash)
	}
	return &held.receipts[at], nil
}

// proof is a block with its receipts; nil where they could not be proven.
type proof struct {
	block    Block
	receipts []Receipt
}

// proof reads a block and its receipts. That they are not served is an answer; that nobody answers is an error.
func (r Reader) proof(ctx context.Context, hash chain.Hash) (*proof, error) {
	block, err := r.BlockWithReceipts(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("proving receipts: %w", err) // where it is not found the chain has changed meanwhile
	}
	receipts, err := r.Receipts(ctx, block)
	switch {
	case err != nil && !everyAnswer(err, isAnswer):
		return nil, fmt.Errorf("proving receipts: %w", err)
	case err != nil || slices.ContainsFunc(receipts, Receipt.unknown):
		receipts = nil
	case !block.wholeBody():
		text := fmt.Sprintf("the transactions of block %d do not hash to %s", block.Number, block.TransactionsRoot)
		r.pool.excludeBody(&block, ReasonLied, text)
		return nil, fmt.Errorf("proving receipts: %s", text)
	}
	return &proof{block, receipts}, nil
}

// proofs are those of the blocks that were last asked for: a transaction is looked at until its block is final, and
// blocks are large. The zero value is ready to use, by several goroutines.
type proofs struct {
	asking singleflight.Group // transactions of one block are asked for side by side

	mu    sync.Mutex
	known map[chain.Hash]*proof
	order []chain.Hash
}

// keptProofs is of how many blocks: with about one MB each, enough for all that are not final on an ordinary day.
const keptProofs = 8

// of returns the proof of a block, made where it is not there.
func (p *proofs) of(hash chain.Hash, read func() (*proof, error)) (*proof, error) {
	p.mu.Lock()
	kept := p.known[hash]
	p.mu.Unlock()
	if kept != nil {
		return kept, nil
	}
	asked, err, _ := p.asking.Do(string(hash[:]), func() (any, error) { return read() })
	fresh, _ := asked.(*proof)
	if err != nil || fresh.receipts == nil { // what could not be proven now may be proven a moment later
		return fresh, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[chain.Hash]*proof{}
	}
	if p.known[hash] == nil {
		p.order = append(p.order, hash)
	}
	p.known[hash] = fresh
	if len(p.order) > keptProofs {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
	return fresh, nil
}
