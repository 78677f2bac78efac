package evmnode

import (
	"fmt"
	"runtime"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// register adds every namespace to the server.
func (n *Node) register() error {
	for _, api := range []struct {
		namespace string
		methods   any
	}{
		{"eth", chainAPI{n}}, {"eth", stateAPI{n}}, {"eth", feeAPI{n}}, {"eth", logAPI{n}},
		{"net", netAPI{n}}, {"web3", web3API{}}, {"devnet", devnetAPI{n}},
	} {
		if err := n.server.RegisterName(api.namespace, api.methods); err != nil {
			return fmt.Errorf("registering %s methods: %w", api.namespace, err)
		}
	}
	return nil
}

// chainAPI has the eth methods about blocks and transactions. What is not there is null, as on every node.
type chainAPI struct{ n *Node }

//nolint:staticcheck // The method is called eth_chainId.
func (a chainAPI) ChainId() *hexutil.Big { return (*hexutil.Big)(a.n.ChainID()) }

func (a chainAPI) BlockNumber() hexutil.Uint64 { return hexutil.Uint64(a.n.Head().Number.Uint64()) }

func (a chainAPI) GetBlockByNumber(number rpc.BlockNumber, full bool) fields {
	return a.marshal(a.n.headerByNumber(number), full)
}

func (a chainAPI) GetBlockByHash(hash common.Hash, full bool) fields {
	return a.marshal(a.n.headerByHash(hash), full)
}

func (a chainAPI) marshal(h *types.Header, full bool) fields {
	block := a.block(h)
	if block == nil {
		return nil
	}
	return a.n.marshalBlock(block, full)
}

func (a chainAPI) block(h *types.Header) *types.Block {
	if h == nil {
		return nil
	}
	return a.n.chain.GetBlock(h.Hash(), h.Number.Uint64())
}

// GetTransactionByHash finds mined transactions first, then those that wait in the pool.
func (a chainAPI) GetTransactionByHash(hash common.Hash) fields {
	if at, tx := a.n.chain.GetCanonicalTransaction(hash); tx != nil {
		if h := a.n.chain.GetHeader(at.BlockHash, at.BlockIndex); h != nil {
			return a.n.marshalTx(tx, h, at.Index)
		}
	}
	if tx := a.n.pool.Get(hash); tx != nil {
		return a.n.marshalTx(tx, nil, 0)
	}
	return nil
}

func (a chainAPI) GetTransactionReceipt(hash common.Hash) fields {
	at, tx := a.n.chain.GetCanonicalTransaction(hash)
	// a block is stored before it is what clients see as latest
	if tx == nil || at.BlockIndex > a.n.head.Load().Number.Uint64() {
		return nil
	}
	receipts := a.n.chain.GetReceiptsByHash(at.BlockHash)
	if at.Index >= uint64(len(receipts)) {
		return nil
	}
	return a.n.marshalReceipt(receipts[at.Index], tx)
}

func (a chainAPI) GetBlockReceipts(ref rpc.BlockNumberOrHash) []fields {
	h, err := a.n.header(&ref)
	if err != nil {
		return nil // Here an unknown block is no error but null.
	}
	txs := a.block(h).Transactions()
	out := make([]fields, 0, len(txs))
	for i, receipt := range a.n.chain.GetReceiptsByHash(h.Hash()) {
		out = append(out, a.n.marshalReceipt(receipt, txs[i]))
	}
	return out
}

// SendRawTransaction answers with the hash once the transaction is in the pool, else with the pool's own error.
func (a chainAPI) SendRawTransaction(raw hexutil.Bytes) (common.Hash, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return common.Hash{}, err
	}
	if err := a.n.SendTransaction(tx); err != nil {
		return common.Hash{}, err
	}
	return tx.Hash(), nil
}

type netAPI struct{ n *Node }

func (a netAPI) Version() string { return a.n.ChainID().String() }

type web3API struct{}

func (web3API) ClientVersion() string {
	return fmt.Sprintf("perpkeeper-devnet/%s-%s/%s", runtime.GOOS, runtime.GOARCH, runtime.Version())
}
