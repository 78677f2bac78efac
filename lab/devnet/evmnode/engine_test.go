package evmnode

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A chain that takes any header would hide a fault of the builder.
func TestHeaderRules(t *testing.T) {
	parent := &types.Header{Number: big.NewInt(7), GasLimit: DefaultGasLimit, Difficulty: difficulty,
		BaseFee: new(big.Int)}
	setMilliTime(parent, 1_000_500)
	child := func() *types.Header {
		h := &types.Header{ParentHash: parent.Hash(), Number: big.NewInt(8), GasLimit: DefaultGasLimit,
			Difficulty: difficulty, BaseFee: new(big.Int)}
		setMilliTime(h, 1_000_500)
		return h
	}
	if err := verifyChild(parent, child()); err != nil {
		t.Fatalf("a block of the same millisecond: %v", err)
	}
	for name, spoil := range map[string]func(*types.Header){
		"number":        func(h *types.Header) { h.Number = big.NewInt(9) },
		"earlier":       func(h *types.Header) { setMilliTime(h, 1_000_499) },
		"1000 ms":       func(h *types.Header) { h.MixDigest = common.BigToHash(big.NewInt(1000)) },
		"base fee":      func(h *types.Header) { h.BaseFee = common.Big1 },
		"no base fee":   func(h *types.Header) { h.BaseFee = nil },
		"gas limit":     func(h *types.Header) { h.GasLimit++ },
		"gas used":      func(h *types.Header) { h.GasUsed = h.GasLimit + 1 },
		"no difficulty": func(h *types.Header) { h.Difficulty = new(big.Int) },
	} {
		h := child()
		spoil(h)
		if err := verifyChild(parent, h); err == nil {
			t.Errorf("accepted a wrong header: %s", name)
		}
	}
}
