package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"perpkeeper/pkg/chain"
)

// Receipt is a mined transaction and the logs it left, in order.
type Receipt struct {
	chain.Tx
	Logs []chain.Log

	kind uint64 // of the transaction; the receipts root covers it
}

// Receipts returns the receipts of a block's transactions, in order; the endpoint that had the block first is asked
// first. They hash to the header's receipts root: logs, their places, statuses, types and gas are exactly those of the
// block. Which transaction stands at a place is what body and receipts say alike; see Verified. Sender, receiver and
// price are one endpoint's word. An endpoint whose receipts hash to another root, or are not those of a body that comes
// to its header, is excluded, and another one asked. It is an error where no endpoint's are.
func (r Reader) Receipts(ctx context.Context, block Block) ([]Receipt, error) {
	if receipts, ok := r.takeEarly(ctx, block); ok {
		return receipts, nil
	}
	receipts, _, err := ask(ctx, r, question[[]Receipt]{
		method: methodReceipts, args: []any{block.Hash}, first: r.pool.memory.server(block.Hash),
		read: func(raw json.RawMessage) ([]Receipt, error) {
			list, root, err := r.readReceipts(raw, block)
			if err == nil && root != block.ReceiptsRoot {
				return nil, lie("the receipts of block %d hash to %s, its header says %s", block.Number, root,
					block.ReceiptsRoot)
			}
			return list, err
		},
	})
	if err != nil {
		return nil, fmt.Errorf("asking for the receipts of block %d: %w", block.Number, err)
	}
	return receipts, nil
}

// isAnswer reports whether a node has said what it can about a question, so that asking it again would not help.
func isAnswer(err error) bool {
	failed, is := errors.AsType[*callError](err)
	return is && (failed.class == failedReply || failed.class == failedLie || failed.class == failedNotFound)
}

// readReceipts reads the receipts of a block and what they hash to.
func (r Reader) readReceipts(raw []byte, block Block) ([]Receipt, chain.Hash, error) {
	replies, err := decodeReceipts(raw)
	switch {
	case err != nil:
		return nil, chain.Hash{}, err
	case replies == nil:
		return nil, chain.Hash{}, &notFoundError{fmt.Sprintf("block %d with its receipts", block.Number)}
	case len(replies) != len(block.Txs):
		return nil, chain.Hash{}, r.misfit(&block, "%d receipts for the %d transactions of block %d", len(replies),
			len(block.Txs), block.Number)
	}
	receipts := make([]Receipt, len(replies))
	nextLog, gasBefore := uint32(0), uint64(0)
	for i := range replies {
		reply := &replies[i]
		if err := reply.check(block, i, nextLog); err != nil {
			return nil, chain.Hash{}, err
		}
		if tx := block.Txs[i].Hash; reply.txHash != tx {
			return nil, chain.Hash{}, r.misfit(&block, "receipt %d of block %d is of transaction %s, and not of %s", i,
				block.Number, reply.txHash, tx)
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
	}, kind: r.kind}
	for _, log := range r.logs {
		out.Logs = append(out.Logs, log.Log)
	}
	return out
}

// receiptsRoot is what the header commits to: the root of the trie of the encoded receipts.
func receiptsRoot(replies []receiptReply) chain.Hash {
	return chain.Hash(types.DeriveSha(receiptListOf(replies), trie.NewStackTrie(nil)))
}

// receiptList encodes receipts of types that go-ethereum does not know as it encodes all others: every type there is
// has the same fields. One that has others comes to another root, and stays unproven.
type receiptList struct {
	types.Receipts
	replies []receiptReply
}

func receiptListOf(replies []receiptReply) receiptList {
	list := receiptList{make(types.Receipts, len(replies)), replies}
	for i, r := range replies {
		receipt := &types.Receipt{Type: uint8(min(r.kind, types.SetCodeTxType)), Status: r.status,
			CumulativeGasUsed: r.cumulativeGas}
		for _, log := range r.logs {
			receipt.Logs = append(receipt.Logs, log.consensus())
		}
		receipt.Bloom = types.CreateBloom(receipt)
		list.Receipts[i] = receipt
	}
	return list
}

// EncodeIndex writes the i-th receipt, behind the byte that is its type.
func (l receiptList) EncodeIndex(i int, to *bytes.Buffer) {
	at := to.Len()
	l.Receipts.EncodeIndex(i, to)
	if kind := l.replies[i].kind; kind > types.SetCodeTxType {
		to.Bytes()[at] = byte(kind)
	}
}

// consensus is the part of a log that receipts commit to.
func (l logReply) consensus() *types.Log {
	log := &types.Log{Address: common.Address(l.Address), Data: l.Data}
	for _, t := range l.Topics {
		log.Topics = append(log.Topics, common.Hash(t))
	}
	return log
}
