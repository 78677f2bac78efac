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
// first. Proven means that they hash to the header's receipts root: then logs, their places, statuses and gas are
// exactly those of the block. Not proven is which transaction stands at a place, its hash, sender and nonce: body and
// receipts only have to agree, and one endpoint may serve both. An endpoint whose receipts hash to another root is
// excluded, and another one asked. They are not proven if no endpoint's are, or if the block has a kind of transaction
// that this build cannot encode.
func (r Reader) Receipts(ctx context.Context, block Block) (receipts []Receipt, proven bool, err error) {
	if receipts, ok := r.takeEarly(ctx, block); ok {
		return receipts, true, nil
	}
	var doubtful atomic.Pointer[[]Receipt]
	type answer struct {
		receipts []Receipt
		proven   bool
	}
	best, from, err := ask(ctx, r, question[answer]{
		method: methodReceipts, args: []any{block.Hash}, first: r.pool.memory.server(block.Hash, PartHeader),
		read: func(raw json.RawMessage) (answer, error) {
			list, root, err := readReceipts(raw, block)
			if err == nil && root != block.ReceiptsRoot && !root.IsZero() {
				doubtful.Store(&list)
				return answer{}, lie("the receipts of block %d hash to %s, its header says %s", block.Number, root,
					block.ReceiptsRoot)
			}
			return answer{list, root == block.ReceiptsRoot}, err
		},
	})
	switch {
	case err == nil:
		r.pool.memory.serve(block.Hash, PartReceipts, from)
		return best.receipts, best.proven, nil
	case doubtful.Load() != nil && everyAnswer(err, isAnswer):
		return *doubtful.Load(), false, nil
	default:
		return nil, false, fmt.Errorf("asking for the receipts of block %d: %w", block.Number, err)
	}
}

// isAnswer reports whether a node has said what it can about a question, so that asking it again would not help.
func isAnswer(err error) bool {
	failed, is := errors.AsType[*callError](err)
	return is && (failed.class == failedReply || failed.class == failedLie || failed.class == failedNotFound)
}

// readReceipts reads the receipts of a block and what they hash to; zero if that cannot be computed.
func readReceipts(raw []byte, block Block) ([]Receipt, chain.Hash, error) {
	replies, err := decodeReceipts(raw)
	switch {
	case err != nil:
		return nil, chain.Hash{}, err
	case replies == nil:
		return nil, chain.Hash{}, &notFoundError{fmt.Sprintf("block %d with its receipts", block.Number)}
	case len(replies) != len(block.Txs):
		return nil, chain.Hash{}, lie("%d receipts for the %d transactions of block %d", len(replies), len(block.Txs),
			block.Number)
	}
	receipts := make([]Receipt, len(replies))
	nextLog, gasBefore := uint32(0), uint64(0)
	for i := range replies {
		reply := &replies[i]
		if err := reply.check(block, i, nextLog); err != nil {
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
	if r.blockHash != block.Hash || r.block != block.Number || int(r.index) != i || r.txHash != block.Txs[i].Hash {
		return lie("receipt %d is of transaction %s, number %d of block %d %s", i, r.txHash, r.index, r.block,
			r.blockHash)
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
	return chain.Hash(types.DeriveSha(receipts, trie.NewListHasher()))
}

// consensus is the part of a log that receipts commit to.
func (l logReply) consensus() *types.Log {
	log := &types.Log{Address: common.Address(l.Address), Data: l.Data}
	for _, t := range l.Topics {
		log.Topics = append(log.Topics, common.Hash(t))
	}
	return log
}
