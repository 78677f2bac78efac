package evmnode

import (
	"cmp"
	"errors"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	priceBlocks     = 20 // Blocks whose prices eth_gasPrice looks at.
	pricePercentile = 60
	maxFeeHistory   = 1024
)

// feeAPI has the eth methods about prices. The base fee is always 0, so a price is all tip.
type feeAPI struct{ n *Node }

// GasPrice is the 60th percentile of what the last 20 blocks paid, but never below what the pool accepts.
func (a feeAPI) GasPrice() *hexutil.Big {
	floor := new(big.Int).SetUint64(a.n.minGasPrice.Load())
	var paid []*big.Int
	head := a.n.Head()
	for h, left := head, priceBlocks; h != nil && left > 0; h, left = a.n.chain.GetHeaderByHash(h.ParentHash), left-1 {
		for _, tx := range a.n.chain.GetBlock(h.Hash(), h.Number.Uint64()).Transactions() {
			paid = append(paid, tx.EffectiveGasTipValue(h.BaseFee))
		}
	}
	if len(paid) == 0 {
		return (*hexutil.Big)(floor)
	}
	slices.SortFunc(paid, (*big.Int).Cmp)
	return (*hexutil.Big)(slices.MaxFunc([]*big.Int{floor, paid[(len(paid)-1)*pricePercentile/100]}, (*big.Int).Cmp))
}

type feeHistoryJSON struct {
	OldestBlock   *hexutil.Big     `json:"oldestBlock"`
	Reward        [][]*hexutil.Big `json:"reward,omitempty"`
	BaseFeePerGas []*hexutil.Big   `json:"baseFeePerGas"`
	GasUsedRatio  []float64        `json:"gasUsedRatio"`
}

// FeeHistory returns, for count blocks up to last, how full they were and the tips at the given percentiles of their
// gas.
func (a feeAPI) FeeHistory(count math.HexOrDecimal64, last rpc.BlockNumber, percentiles []float64) (*feeHistoryJSON,
	error) {
	h := a.n.headerByNumber(last)
	if h == nil {
		return nil, errHeaderNotFound
	}
	if !slices.IsSorted(percentiles) ||
		slices.ContainsFunc(percentiles, func(p float64) bool { return p < 0 || p > 100 }) {
		return nil, errors.New("invalid reward percentile")
	}
	blocks := min(uint64(count), maxFeeHistory, h.Number.Uint64()+1)
	oldest := h.Number.Uint64() + 1 - blocks
	out := &feeHistoryJSON{OldestBlock: (*hexutil.Big)(new(big.Int).SetUint64(oldest)),
		BaseFeePerGas: []*hexutil.Big{new(hexutil.Big)}}
	for number := oldest; number < oldest+blocks; number++ {
		block := a.n.chain.GetBlockByNumber(number)
		out.BaseFeePerGas = append(out.BaseFeePerGas, new(hexutil.Big))
		out.GasUsedRatio = append(out.GasUsedRatio, float64(block.GasUsed())/float64(block.GasLimit()))
		if len(percentiles) > 0 {
			out.Reward = append(out.Reward, rewards(block, a.n.chain.GetReceiptsByHash(block.Hash()), percentiles))
		}
	}
	return out, nil
}

// rewards returns the tip that the gas of a block had paid at each percentile; zeros for an empty block.
func rewards(block *types.Block, receipts types.Receipts, percentiles []float64) []*hexutil.Big {
	type paid struct {
		gas uint64
		tip *big.Int
	}
	all := make([]paid, 0, len(block.Transactions()))
	for i, tx := range block.Transactions() {
		all = append(all, paid{receipts[i].GasUsed, tx.EffectiveGasTipValue(block.BaseFee())})
	}
	slices.SortFunc(all, func(a, b paid) int { return cmp.Or(a.tip.Cmp(b.tip), cmp.Compare(a.gas, b.gas)) })
	out := make([]*hexutil.Big, 0, len(percentiles))
	at, sum := 0, uint64(0)
	for _, p := range percentiles {
		if len(all) == 0 {
			out = append(out, new(hexutil.Big))
			continue
		}
		threshold := uint64(float64(block.GasUsed()) * p / 100)
		for at < len(all)-1 && sum+all[at].gas < threshold {
			sum += all[at].gas
			at++
		}
		out = append(out, (*hexutil.Big)(all[at].tip))
	}
	return out
}
