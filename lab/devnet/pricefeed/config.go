package pricefeed

import (
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// DefaultInterval is the time between two reports of a token.
	DefaultInterval = 250 * time.Millisecond
	// Kept is how long a report can be asked for.
	Kept = 10 * time.Minute
)

// Token is what the feed has to know of a token.
type Token struct {
	Address common.Address
	Price   *big.Int // At the start, USD·10^30 per smallest unit.
	Stride  int64    // The most the price moves at a tick, in basis points; 0 for a stable price.
	Spread  int64    // From min to max, in basis points.
}

// Config says which prices to make. Tokens and Sign are needed.
type Config struct {
	Tokens   []Token
	Provider common.Address // Of every report.
	Sign     Sign
	Interval time.Duration // Default DefaultInterval.
	Seed     uint64
	Listen   string // Default 127.0.0.1:0, that is a free port.
}

// Sign makes the bytes that prove a price to the exchange's oracle: prices in USD·10^30 per smallest unit, time in Unix
// seconds.
type Sign func(token common.Address, low, high *big.Int, second uint64) []byte
