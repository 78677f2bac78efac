package evm

import (
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/pkg/chain"
)

// Filter chooses logs: those of one of the addresses whose first topic is one of the topics. Neither list may be empty.
type Filter struct {
	Addresses []chain.Address
	Topics    []chain.Hash
}

// Choose returns the logs of receipts that the filter chooses, in order.
func (f Filter) Choose(receipts ...Receipt) (chosen []chain.Log) {
	for _, r := range receipts {
		for _, l := range r.Logs {
			if f.matches(l) {
				chosen = append(chosen, l)
			}
		}
	}
	return chosen
}

func (f Filter) matches(l chain.Log) bool {
	return slices.Contains(f.Addresses, l.Address) && len(l.Topics) > 0 && slices.Contains(f.Topics, l.Topics[0])
}

// Bloom is a block's filter of log addresses and topics.
type Bloom [types.BloomByteLength]byte

// MayMatch is false if a block's bloom proves that no log of the block is chosen.
func (f Filter) MayMatch(b Bloom) bool {
	bloom := types.Bloom(b)
	return slices.ContainsFunc(f.Addresses, func(a chain.Address) bool { return bloom.Test(a[:]) }) &&
		slices.ContainsFunc(f.Topics, func(t chain.Hash) bool { return bloom.Test(t[:]) })
}

func checkLog(r logReply, block chain.BlockRef) error {
	switch {
	case r.BlockHash != block.Hash || r.Block != block.Number:
		return lie("log %d says it stands in block %d %s", r.Index, r.Block, r.BlockHash)
	case r.removed:
		return lie("log %d says it was removed", r.Index)
	default:
		return nil
	}
}
