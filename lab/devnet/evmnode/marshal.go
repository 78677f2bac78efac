package evmnode

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// blockJSON is a block as eth_getBlockBy* returns it: a node's fields plus BSC's milliTimestamp. Its header fields
// decode into types.Header with the same hash.
type blockJSON struct {
	Number           *hexutil.Big     `json:"number"`
	Hash             common.Hash      `json:"hash"`
	ParentHash       common.Hash      `json:"parentHash"`
	Nonce            types.BlockNonce `json:"nonce"`
	MixHash          common.Hash      `json:"mixHash"`
	Sha3Uncles       common.Hash      `json:"sha3Uncles"`
	LogsBloom        types.Bloom      `json:"logsBloom"`
	StateRoot        common.Hash      `json:"stateRoot"`
	Miner            common.Address   `json:"miner"`
	Difficulty       *hexutil.Big     `json:"difficulty"`
	ExtraData        hexutil.Bytes    `json:"extraData"`
	GasLimit         hexutil.Uint64   `json:"gasLimit"`
	GasUsed          hexutil.Uint64   `json:"gasUsed"`
	Timestamp        hexutil.Uint64   `json:"timestamp"`
	MilliTimestamp   hexutil.Uint64   `json:"milliTimestamp"`
	TransactionsRoot common.Hash      `json:"transactionsRoot"`
	ReceiptsRoot     common.Hash      `json:"receiptsRoot"`
	BaseFeePerGas    *hexutil.Big     `json:"baseFeePerGas"`
	Size             hexutil.Uint64   `json:"size"`
	Transactions     []any            `json:"transactions"`
	Uncles           []common.Hash    `json:"uncles"`
}

func (n *Node) marshalBlock(block *types.Block, full bool) *blockJSON {
	h := block.Header()
	txs := make([]any, 0, len(block.Transactions()))
	for i, tx := range block.Transactions() {
		if full {
			txs = append(txs, n.marshalTx(tx, h, uint64(i)))
		} else {
			txs = append(txs, tx.Hash())
		}
	}
	return &blockJSON{
		Number: (*hexutil.Big)(h.Number), Hash: h.Hash(), ParentHash: h.ParentHash, Nonce: h.Nonce,
		MixHash:    h.MixDigest,
		Sha3Uncles: h.UncleHash, LogsBloom: h.Bloom, StateRoot: h.Root, Miner: h.Coinbase,
		Difficulty: (*hexutil.Big)(h.Difficulty),
		ExtraData:  h.Extra, GasLimit: hexutil.Uint64(h.GasLimit), GasUsed: hexutil.Uint64(h.GasUsed),
		Timestamp: hexutil.Uint64(h.Time), MilliTimestamp: hexutil.Uint64(MilliTime(h)),
		TransactionsRoot: h.TxHash, ReceiptsRoot: h.ReceiptHash, BaseFeePerGas: (*hexutil.Big)(h.BaseFee),
		Size: hexutil.Uint64(block.Size()), Transactions: txs, Uncles: []common.Hash{},
	}
}

// txJSON is a transaction as eth_getTransactionByHash returns it. The first four fields are null while it waits in the
// pool.
type txJSON struct {
	BlockHash        *common.Hash      `json:"blockHash"`
	BlockNumber      *hexutil.Big      `json:"blockNumber"`
	BlockTimestamp   *hexutil.Uint64   `json:"blockTimestamp"`
	TransactionIndex *hexutil.Uint64   `json:"transactionIndex"`
	From             common.Address    `json:"from"`
	Gas              hexutil.Uint64    `json:"gas"`
	GasPrice         *hexutil.Big      `json:"gasPrice"`
	GasFeeCap        *hexutil.Big      `json:"maxFeePerGas,omitempty"`
	GasTipCap        *hexutil.Big      `json:"maxPriorityFeePerGas,omitempty"`
	Hash             common.Hash       `json:"hash"`
	Input            hexutil.Bytes     `json:"input"`
	Nonce            hexutil.Uint64    `json:"nonce"`
	To               *common.Address   `json:"to"`
	Value            *hexutil.Big      `json:"value"`
	Type             hexutil.Uint64    `json:"type"`
	AccessList       *types.AccessList `json:"accessList,omitempty"`
	ChainID          *hexutil.Big      `json:"chainId,omitempty"`
	V                *hexutil.Big      `json:"v"`
	R                *hexutil.Big      `json:"r"`
	S                *hexutil.Big      `json:"s"`
	YParity          *hexutil.Uint64   `json:"yParity,omitempty"`
}

// marshalTx takes the block a transaction is in, or nil while it waits in the pool.
func (n *Node) marshalTx(tx *types.Transaction, in *types.Header, index uint64) *txJSON {
	from, _ := types.Sender(n.signer, tx) // The pool lets none in without a sender.
	v, r, s := tx.RawSignatureValues()
	out := &txJSON{
		From: from, Gas: hexutil.Uint64(tx.Gas()), GasPrice: (*hexutil.Big)(tx.GasPrice()), Hash: tx.Hash(),
		Input: tx.Data(),
		Nonce: hexutil.Uint64(tx.Nonce()), To: tx.To(), Value: (*hexutil.Big)(tx.Value()),
		Type: hexutil.Uint64(tx.Type()),
		V:    (*hexutil.Big)(v), R: (*hexutil.Big)(r), S: (*hexutil.Big)(s),
	}
	if id := tx.ChainId(); id.Sign() != 0 {
		out.ChainID = (*hexutil.Big)(id)
	}
	if tx.Type() != types.LegacyTxType {
		access, parity := tx.AccessList(), hexutil.Uint64(v.Uint64())
		out.AccessList, out.YParity = &access, &parity
	}
	if tx.Type() >= types.DynamicFeeTxType {
		out.GasFeeCap, out.GasTipCap = (*hexutil.Big)(tx.GasFeeCap()), (*hexutil.Big)(tx.GasTipCap())
	}
	if in != nil {
		hash, seconds := in.Hash(), hexutil.Uint64(in.Time)
		out.BlockHash, out.BlockNumber, out.BlockTimestamp = &hash, (*hexutil.Big)(in.Number), &seconds
		out.TransactionIndex = (*hexutil.Uint64)(&index)
		out.GasPrice = (*hexutil.Big)(tx.EffectiveGasTipValue(in.BaseFee))
	}
	return out
}

// receiptJSON is a receipt as eth_getTransactionReceipt returns it.
type receiptJSON struct {
	BlockHash         common.Hash     `json:"blockHash"`
	BlockNumber       *hexutil.Big    `json:"blockNumber"`
	TransactionHash   common.Hash     `json:"transactionHash"`
	TransactionIndex  hexutil.Uint64  `json:"transactionIndex"`
	From              common.Address  `json:"from"`
	To                *common.Address `json:"to"`
	GasUsed           hexutil.Uint64  `json:"gasUsed"`
	CumulativeGasUsed hexutil.Uint64  `json:"cumulativeGasUsed"`
	ContractAddress   *common.Address `json:"contractAddress"`
	Logs              []*types.Log    `json:"logs"`
	LogsBloom         types.Bloom     `json:"logsBloom"`
	Type              hexutil.Uint64  `json:"type"`
	EffectiveGasPrice *hexutil.Big    `json:"effectiveGasPrice"`
	Status            hexutil.Uint64  `json:"status"`
}

func (n *Node) marshalReceipt(r *types.Receipt, tx *types.Transaction) *receiptJSON {
	from, _ := types.Sender(n.signer, tx)
	out := &receiptJSON{
		BlockHash: r.BlockHash, BlockNumber: (*hexutil.Big)(r.BlockNumber), TransactionHash: tx.Hash(),
		TransactionIndex: hexutil.Uint64(r.TransactionIndex), From: from, To: tx.To(),
		GasUsed: hexutil.Uint64(r.GasUsed), CumulativeGasUsed: hexutil.Uint64(r.CumulativeGasUsed),
		Logs: r.Logs, LogsBloom: r.Bloom, Type: hexutil.Uint64(tx.Type()),
		EffectiveGasPrice: (*hexutil.Big)(r.EffectiveGasPrice), Status: hexutil.Uint64(r.Status),
	}
	if out.Logs == nil {
		out.Logs = []*types.Log{}
	}
	if r.ContractAddress != (common.Address{}) {
		out.ContractAddress = &r.ContractAddress
	}
	return out
}
