package evmnode

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

const (
	// DefaultChainID is the chain id when none is configured.
	DefaultChainID = 1337
	// DefaultBlockTime is BSC's block interval since January 2026.
	DefaultBlockTime = 450 * time.Millisecond
	// DefaultGasLimit is BSC's block gas limit.
	DefaultGasLimit = 55_000_000
	// DefaultMinGasPrice is the lowest gas price, in wei, BSC's producers accept in practice (0.05 gwei).
	DefaultMinGasPrice = 50_000_000
	// MaxTxGas is BSC's limit of gas for one transaction.
	MaxTxGas = 1 << 24

	minBlockTime = 10 * time.Millisecond
)

// Config says what chain to make. The zero value is a BSC-like chain without funded accounts on a free port of the
// loopback interface.
type Config struct {
	ChainID      uint64             // Default DefaultChainID.
	BlockTime    time.Duration      // Interval of blocks, empty ones too. Default DefaultBlockTime, at least 10 ms.
	Manual       bool               // Blocks are made by Mine only; BlockTime is ignored.
	GasLimit     uint64             // Per block. Default DefaultGasLimit.
	MinGasPrice  uint64             // Wei; cheaper transactions are refused as underpriced. Default DefaultMinGasPrice.
	PaymentLane  uint64             // Percent of a block's gas for payments alone, see SetPaymentLane. Default 0.
	SafeLag      uint64             // Blocks from the head to `safe`. Default 1.
	FinalizedLag uint64             // Blocks from the head to `finalized`. Default 2.
	Alloc        types.GenesisAlloc // Accounts and contracts of the genesis block.
	Image        *Image             // What the chain begins with in place of a genesis block with Alloc. Default none.
	Listen       string             // Address for HTTP and WebSocket. Default 127.0.0.1:0, that is a free port.
	Dir          string             // Folder, new or empty, for blocks and states. Default none: they are in memory.
	Seed         uint64             // Decides where a replayed fork puts transactions.
}

// withDefaults fills what was left out and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	c.ChainID = orDefault(c.ChainID, DefaultChainID)
	c.BlockTime = orDefault(c.BlockTime, DefaultBlockTime)
	c.GasLimit = orDefault(c.GasLimit, DefaultGasLimit)
	c.MinGasPrice = orDefault(c.MinGasPrice, DefaultMinGasPrice)
	c.SafeLag = orDefault(c.SafeLag, 1)
	c.FinalizedLag = orDefault(c.FinalizedLag, 2)
	c.Listen = orDefault(c.Listen, "127.0.0.1:0")
	if c.BlockTime < minBlockTime {
		return c, fmt.Errorf("block time %s is shorter than %s", c.BlockTime, minBlockTime)
	}
	if c.PaymentLane >= 100 {
		return c, fmt.Errorf("a payment lane of %d percent leaves no gas to calls", c.PaymentLane)
	}
	if c.FinalizedLag < c.SafeLag {
		return c, fmt.Errorf("finalized lag %d is smaller than safe lag %d", c.FinalizedLag, c.SafeLag)
	}
	return c, nil
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
