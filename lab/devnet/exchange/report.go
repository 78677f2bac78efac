package exchange

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet/contracts"
)

// Price of one token: USD with 30 decimals for one smallest unit.
type Price struct {
	Min, Max *big.Int
}

// USD30 converts whole and fractional dollars for one whole token, given in millionths, into the exchange's unit: USD
// with 30 decimals for one smallest unit of a token with these decimals.
func USD30(microUSD int64, decimals uint8) *big.Int {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(24-int(decimals))), nil)
	return unit.Mul(unit, big.NewInt(microUSD))
}

// OracleParams is what a keeper passes to every execution: for each token its provider and that provider's report. The
// layout is that of the contracts' SetPricesParams.
type OracleParams struct {
	Tokens    []common.Address
	Providers []common.Address
	Data      [][]byte
}

// Add appends the report of one token.
func (p *OracleParams) Add(token, provider common.Address, report []byte) {
	p.Tokens = append(p.Tokens, token)
	p.Providers = append(p.Providers, provider)
	p.Data = append(p.Data, report)
}

// SignReport makes the report that the exchange's oracle provider accepts for a token: abi.encode(token, min, max,
// timestamp, v, r, s), signed over keccak256(abi.encode(chainID, token, min, max, timestamp)). Prices are USD with 30
// decimals per smallest unit, the timestamp is in seconds. It panics on a key that is not a secp256k1 key.
func SignReport(key *ecdsa.PrivateKey, chainID *big.Int, token common.Address, price Price, timestamp uint64) []byte {
	at := new(big.Int).SetUint64(timestamp)
	digest := crypto.Keccak256(contracts.Encode(chainID, token, price.Min, price.Max, at))
	signature, err := crypto.Sign(digest, key)
	if err != nil {
		panic(fmt.Sprintf("signing a price report: %v", err))
	}
	r, s := common.BytesToHash(signature[:32]), common.BytesToHash(signature[32:64])
	v := big.NewInt(int64(signature[64]) + 27)
	return contracts.Encode(token, price.Min, price.Max, at, v, r, s)
}
