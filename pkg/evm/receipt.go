package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"perpkeeper/pkg/chain"
)

// Receipt is a mined transaction and the logs it left, in order.
type Receipt struct {
	chain.Tx
	Logs []chain.Log
}

// Receipts returns the receipts of a block's transactions, in order; the endpoint that had the block first is asked
// first. Proven means that they hash to the header's receipts root, and the block's transactions to the transactions
// root: then logs, their places, statuses and gas, and which transaction stands at a place, are exactly those of the
// block. Of the sender body and receipts say the same, or it is who signed; see Sender. Prices are one endpoint's word.
// An endpoint whose receipts hash to another root, or differ from what the body proves, is excluded, and another one
// asked. They are not proven if no endpoint's are, or if the block has a kind of transaction that this build cannot
// encode.
func (r Reader) Receipts(ctx context.Context, block Block) (receipts []Receipt, proven bool, err error) {
	if receipts, ok := r.takeEarly(ctx, block); ok {
		r.compareSenders(block, receipts)
		return receipts, block.BodyProven(), nil
	}
	var doubtful atomic.Pointer[[]Receipt]
	type answer struct {
		receipts []Receipt
		proven   bool
	}
	best, from, err := ask(ctx, r, question[answer]{
		method: methodReceipts, args: []any{block.Hash}, first: r.pool.memory.server(block.Hash, PartHeader),
		read: func(raw json.RawMessage) (answer, error) {
			list, root, err := r.readReceipts(raw, block)
			if err == nil && root != block.ReceiptsRoot && !root.IsZero() {
				doubtful.Store(&list)
				return answer{}, lie("the receipts of block %d hash to %s, its header says %s", block.Number, root,
					block.ReceiptsRoot)
			}
			return answer{list, root == block.ReceiptsRoot && block.BodyProven()}, err
		},
	})
	switch {
	case err == nil:
		r.pool.memory.serve(block.Hash, PartReceipts, from)
		r.compareSenders(block, best.receipts)
		return best.receipts, best.proven, nil
	case doubtful.Load() != nil && everyAnswer(err, isAnswer):
		return *doubtful.Load(), false, nil
	default:
		return nil, false, fmt.Errorf("asking for the receipts of block %d: %w", block.Number, err)
	}
}

// compareSenders has the endpoint excluded that gave a proven body with other senders than the receipts name, which
// have been held against the signatures.
func (r Reader) compareSenders(block Block, receipts []Receipt) {
	for i, receipt := range receipts {
		if block.BodyProven() && receipt.From != block.Txs[i].From {
			r.pool.namedWrongSender(block, i, receipt.From)
			return
		}
	}
}

// isAnswer reports whether a node has said what it can about a question, so that asking it again would not help.
func isAnswer(err error) bool {
	failed, is := errors.AsType[*callError](err)
	return is && (failed.class == failedReply || failed.class == failedLie || failed.class == failedNotFound)
}

// readReceipts reads the receipts of a block and what they hash to; zero if that cannot be computed.
func (r Reader) readReceipts(raw []byte, block Block) ([]Receipt, chain.Hash, error) {
	replies, err := decodeReceipts(raw)
	switch {
	case err != nil:
		return nil, chain.Hash{}, err
	case replies == nil:
		return nil, chain.Hash{}, &notFoundError{fmt.Sprintf("block %d with its receipts", block.Number)}
	case len(replies) != len(block.Txs):
		return nil, chain.Hash{}, block.misfit("%d receipts for the %d transactions of block %d", len(replies),
			len(block.Txs), block.Number)
	}
	receipts := make([]Receipt, len(replies))
	nextLog, gasBefore := uint32(0), uint64(0)
	for i := range replies {
		reply := &replies[i]
		if err := reply.check(block, i, nextLog); err != nil {
			return nil, chain.Hash{}, err
		}
		if err := reply.checkParties(block, i, r.pool.chainID); err != nil {
			return nil, chain.Hash{}, err
		}
		reply.gasUsed = reply.cumulativeGas - gasBefore // only the sum is covered by the root
		receipts[i] = reply.receipt(block.Txs[i].Nonce)
		nextLog, gasBefore = nextLog+uint32(len(reply.logs)), reply.cumulativeGas
	}
	return receipts, receiptsRoot(replies), nil
}

// check compares the i-th receipt with the block it was asked for.
func (r *receiptReply) check(block Block, i int, firstLog uint32) error {
	if r.blockHash != block.Hash || r.block != block.Number || int(r.index) != i {
		return lie("receipt %d is of transaction %s, number %d of block %d %s", i, r.txHash, r.index, r.block,
			r.blockHash)
	}
	if tx := block.Txs[i].Hash; r.txHash != tx {
		return block.misfit("receipt %d of block %d is of transaction %s, and not of %s", i, block.Number, r.txHash, tx)
	}
	for k, log := range r.logs {
		if err := checkLog(log, block.BlockRef); err != nil {
			return err
		}
		if log.Index != firstLog+uint32(k) || log.TxHash != r.txHash || log.TxIndex != r.index {
			return lie("log %d stands at place %d of the block, in transaction %s", log.Index, firstLog+uint32(k),
				r.txHash)
		}
	}
	return nil
}

// checkParties compares type, receiver and sender of the i-th receipt, which the receipts root does not cover, with a
// body that is proven. Where body and receipt name different senders the signature tells who is right.
func (r *receiptReply) checkParties(block Block, i int, chainID uint64) error {
	kind, proven := block.kind(i)
	if !proven {
		return nil
	}
	tx := block.Txs[i]
	if kind != r.kind || r.to != tx.To && !r.to.IsZero() {
		return lie("receipt %d is of a transaction of type %d to %s, and the block has one of type %d to %s there", i,
			r.kind, r.to, kind, tx.To)
	}
	r.to = tx.To
	if r.from == tx.From {
		return nil
	}
	from, err := block.signer(i, chainID)
	switch {
	case err != nil: // nobody can tell
		r.from = tx.From
	case from != r.from:
		return lie("receipt %d names the sender %s, and %s has signed", i, r.from, from)
	}
	return nil
}

func (r *receiptReply) receipt(nonce uint64) Receipt {
	out := Receipt{Tx: chain.Tx{
		Hash: r.txHash, From: r.from, To: r.to, Nonce: nonce, Block: r.block, BlockHash: r.blockHash, Index: r.index,
		OK: r.status == 1, GasUsed: r.gasUsed, GasPrice: r.gasPrice,
	}}
	for _, log := range r.logs {
		out.Logs = append(out.Logs, log.Log)
	}
	return out
}

// receiptsRoot is what the header commits to: the root of the trie of the encoded receipts. It is zero where this build
// does not know how to encode one.
func receiptsRoot(replies []receiptReply) chain.Hash {
	receipts := make(types.Receipts, len(replies))
	for i, r := range replies {
		if r.kind > types.SetCodeTxType {
			return chain.Hash{}
		}
		receipts[i] = &types.Receipt{Type: uint8(r.kind), Status: r.status, CumulativeGasUsed: r.cumulativeGas}
		for _, log := range r.logs {
			receipts[i].Logs = append(receipts[i].Logs, log.consensus())
		}
		receipts[i].Bloom = types.CreateBloom(receipts[i])
	}
	return chain.Hash(types.DeriveSha(receipts, trie.NewStackTrie(nil)))
}

// consensus is the part of a log that receipts commit to.
func (l logReply) consensus() *types.Log {
	log := &types.Log{Address: common.Address(l.Address), Data: l.Data}
	for _, t := range l.Topics {
		log.Topics = append(log.Topics, common.Hash(t))
	}
	return log
}
