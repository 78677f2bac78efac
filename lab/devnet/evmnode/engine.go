package evmnode

import (
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// difficulty of every block: what BSC's in-turn producer writes. It is not zero, so the EVM stays on pre-merge rules.
var difficulty = big.NewInt(2)

var errSealing = errors.New("blocks of this chain carry no seal")

// MilliTime returns the time of a block in Unix milliseconds: whole seconds from Time, the rest from MixDigest.
func MilliTime(h *types.Header) uint64 {
	return h.Time*1000 + new(big.Int).SetBytes(h.MixDigest[:]).Uint64()
}

// setMilliTime writes a time in Unix milliseconds into a header.
func setMilliTime(h *types.Header, ms uint64) {
	h.Time = ms / 1000
	h.MixDigest = common.BigToHash(new(big.Int).SetUint64(ms % 1000))
}

// nextMilliTime is the time of a block built now on parent. It follows the wall clock, but never goes behind the
// parent.
func nextMilliTime(parent *types.Header) uint64 {
	return max(uint64(time.Now().UnixMilli()), MilliTime(parent))
}

// engine accepts exactly the headers the builder makes. There is no seal, no reward and no competition: who may write
// is decided by who holds the Node.
type engine struct{}

var _ consensus.Engine = engine{}

func (engine) Author(header *types.Header) (common.Address, error) { return header.Coinbase, nil }

// VerifyHeader implements consensus.Engine.
func (engine) VerifyHeader(chain consensus.ChainHeaderReader, header *types.Header) error {
	if header.Number.Sign() == 0 {
		return nil
	}
	parent := chain.GetHeader(header.ParentHash, header.Number.Uint64()-1)
	if parent == nil {
		return consensus.ErrUnknownAncestor
	}
	return verifyChild(parent, header)
}

// VerifyHeaders implements consensus.Engine. Parents are looked for in the batch first, then in the chain.
func (e engine) VerifyHeaders(chain consensus.ChainHeaderReader, headers []*types.Header) (chan<- struct{},
	<-chan error) {
	results := make(chan error, len(headers))
	for i, header := range headers {
		if i > 0 && headers[i-1].Hash() == header.ParentHash {
			results <- verifyChild(headers[i-1], header)
			continue
		}
		results <- e.VerifyHeader(chain, header)
	}
	return make(chan struct{}), results
}

func verifyChild(parent, header *types.Header) error {
	switch {
	case header.Number.Uint64() != parent.Number.Uint64()+1:
		return consensus.ErrInvalidNumber
	case MilliTime(header) < MilliTime(parent):
		return fmt.Errorf("block time %d ms lies before its parent's %d ms", MilliTime(header), MilliTime(parent))
	case header.MixDigest.Big().Cmp(big.NewInt(1000)) >= 0:
		return fmt.Errorf("mix digest %s is no number of milliseconds below 1000", header.MixDigest)
	case header.BaseFee == nil || header.BaseFee.Sign() != 0:
		return fmt.Errorf("base fee is %v, must be 0", header.BaseFee)
	case header.GasLimit != parent.GasLimit:
		return fmt.Errorf("gas limit is %d, must be %d", header.GasLimit, parent.GasLimit)
	case header.GasUsed > header.GasLimit:
		return fmt.Errorf("gas used %d is above the limit %d", header.GasUsed, header.GasLimit)
	case header.Difficulty.Cmp(difficulty) != 0:
		return fmt.Errorf("difficulty is %v, must be %v", header.Difficulty, difficulty)
	}
	return nil
}

func (engine) VerifyUncles(_ consensus.ChainReader, block *types.Block) error {
	if len(block.Uncles()) > 0 {
		return errors.New("uncles are not allowed")
	}
	return nil
}

func (engine) Prepare(consensus.ChainHeaderReader, *types.Header) error { return nil }

func (engine) Finalize(consensus.ChainHeaderReader, *types.Header, vm.StateDB, *types.Body) {}

func (engine) Seal(consensus.ChainHeaderReader, *types.Block, chan<- *types.Block, <-chan struct{}) error {
	return errSealing
}

func (engine) SealHash(header *types.Header) common.Hash { return header.Hash() }

func (engine) CalcDifficulty(consensus.ChainHeaderReader, uint64, *types.Header) *big.Int {
	return difficulty
}

func (engine) Close() error { return nil }
