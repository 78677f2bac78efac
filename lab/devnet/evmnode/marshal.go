package evmnode

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// fields is a value as go-ethereum writes it, changed to what a node answers with; nil is null.
type fields map[string]any

func fieldsOf(value json.Marshaler, changed fields) fields {
	raw, err := value.MarshalJSON()
	all := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		panic(err) // blocks, transactions and receipts of this chain are written as JSON
	}
	for name, text := range all {
		if _, is := changed[name]; !is {
			changed[name] = text
		}
	}
	return changed
}

// marshalBlock is a block as eth_getBlockBy* returns it: a node's fields plus BSC's milliTimestamp. Its header fields
// decode into types.Header with the same hash.
func (n *Node) marshalBlock(block *types.Block, full bool) fields {
	h := block.Header()
	txs := make([]any, 0, len(block.Transactions()))
	for i, tx := range block.Transactions() {
		if full {
			txs = append(txs, n.marshalTx(tx, h, uint64(i)))
		} else {
			txs = append(txs, tx.Hash())
		}
	}
	return fieldsOf(h, fields{"milliTimestamp": hexutil.Uint64(MilliTime(h)), "size": hexutil.Uint64(block.Size()),
		"transactions": txs, "uncles": []common.Hash{}})
}

// marshalTx is a transaction as eth_getTransactionByHash returns it. It takes the block a transaction is in, or nil
// while it waits in the pool: its place is null then.
func (n *Node) marshalTx(tx *types.Transaction, in *types.Header, index uint64) fields {
	from, _ := types.Sender(n.signer, tx) // The pool lets none in without a sender.
	changed := fields{"from": from, "gasPrice": (*hexutil.Big)(tx.GasPrice()), "blockHash": nil, "blockNumber": nil,
		"blockTimestamp": nil, "transactionIndex": nil}
	if in != nil {
		changed["blockHash"], changed["blockNumber"] = in.Hash(), (*hexutil.Big)(in.Number)
		changed["blockTimestamp"], changed["transactionIndex"] = hexutil.Uint64(in.Time), hexutil.Uint64(index)
		changed["gasPrice"] = (*hexutil.Big)(tx.EffectiveGasTipValue(in.BaseFee))
	}
	return fieldsOf(tx, changed)
}

// marshalReceipt is a receipt as eth_getTransactionReceipt returns it.
func (n *Node) marshalReceipt(r *types.Receipt, tx *types.Transaction) fields {
	from, _ := types.Sender(n.signer, tx)
	changed := fields{"from": from, "to": tx.To(), "type": hexutil.Uint64(tx.Type())}
	if r.ContractAddress == (common.Address{}) {
		changed["contractAddress"] = nil
	}
	if r.Logs == nil {
		changed["logs"] = []*types.Log{}
	}
	return fieldsOf(r, changed)
}
