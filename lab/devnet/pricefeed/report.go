package pricefeed

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Report is a price of one token at one moment, and its proof.
type Report struct {
	Token       common.Address `json:"token"`
	Provider    common.Address `json:"provider"`
	Data        hexutil.Bytes  `json:"data"` // Opaque to everybody but the oracle.
	MinPrice    Price          `json:"minPrice"`
	MaxPrice    Price          `json:"maxPrice"`
	TimestampMS uint64         `json:"timestampMs"`
}

// Price is an integer that travels as a decimal string.
type Price struct{ *big.Int }

// MarshalJSON implements json.Marshaler, in place of the number form of big.Int.
func (p Price) MarshalJSON() ([]byte, error) { return []byte(`"` + p.String() + `"`), nil }
