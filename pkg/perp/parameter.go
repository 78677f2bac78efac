package perp

import "perpkeeper/pkg/chain"

// ParameterSource is where a parameter's value is from.
type ParameterSource string

// The sources of parameters. A call shows the value at the end of its block, so what an event said in that block or
// later stands; a call of a later block does replace it, because scripts and timelocks write to the DataStore without
// any event.
const (
	FromEvent ParameterSource = "event"
	FromCall  ParameterSource = "call"
	// FromAccount is the event of an account that has set a parameter of its own. Anybody may: whoever holds parameters
	// in memory holds only those of them that he needs.
	FromAccount ParameterSource = "account"
)

// Parameter is one word of the exchange's DataStore under its full key.
type Parameter struct {
	Key    chain.Hash      `json:"key"`
	Value  chain.Hash      `json:"value"` // the 32-byte word: number, padded address, or 0/1
	Source ParameterSource `json:"source"`
	Stamp  Stamp           `json:"stamp"`
}

// RowKey implements [Row].
func (p Parameter) RowKey() RowKey { return RowKey{Parameters, p.Key} }

// Uint reads the word as a number.
func (p Parameter) Uint() chain.Uint { return chain.UintFromBytes(p.Value[:]) }

// FullKey is Keys.getFullKey of the contracts: the base key alone, or hashed with its ABI-encoded arguments.
func FullKey(base chain.Hash, data []byte) chain.Hash {
	if len(data) == 0 {
		return base
	}
	return chain.Keccak256(base[:], data)
}

// DataStoreKey is keccak256(abi.encode(keccak256(abi.encode(name)), args…)) for arguments of one word each, as Keys.sol
// builds it.
func DataStoreKey(name string, args ...chain.Hash) chain.Hash {
	base := BaseKey(name)
	if len(args) == 0 {
		return base
	}
	parts := [][]byte{base[:]}
	for _, a := range args {
		parts = append(parts, a[:])
	}
	return chain.Keccak256(parts...)
}

// StaticPriceKey is the key of the minimum or maximum that a token has at the static provider, in USD of 30 decimals
// for the token's smallest unit (Keys.staticOraclePriceKey of v2.2c).
func StaticPriceKey(token chain.Address, isMax bool) chain.Hash {
	return DataStoreKey("STATIC_ORACLE_PRICE", token.Hash(), BoolWord(isMax))
}

// BaseKey is keccak256(abi.encode(name)).
func BaseKey(name string) chain.Hash {
	offset, length := chain.U64(32).Bytes32(), chain.U64(uint64(len(name))).Bytes32()
	padded := make([]byte, (len(name)+31)/32*32)
	copy(padded, name)
	return chain.Keccak256(offset[:], length[:], padded)
}

// BoolWord is the word of a boolean argument.
func BoolWord(b bool) (h chain.Hash) {
	if b {
		h[31] = 1
	}
	return h
}

// OracleSource is the price provider the exchange accepts for a token (SetOracleProviderForToken).
type OracleSource struct {
	Oracle   chain.Address `json:"oracle"`
	Token    chain.Address `json:"token"`
	Provider chain.Address `json:"provider"`
	Stamp    Stamp         `json:"stamp"`
}

// RowKey implements [Row].
func (o OracleSource) RowKey() RowKey {
	return RowKey{OracleSources, chain.Keccak256(o.Oracle[:], o.Token[:])}
}

// BadDebt records that a position was closed without covering its costs (InsolventClose). The event names neither
// account nor market: they are joined from the decrease of the same order in the same transaction.
type BadDebt struct {
	OrderKey                 chain.Hash    `json:"orderKey"`
	PositionKey              chain.Hash    `json:"positionKey"`
	Account                  chain.Address `json:"account"`
	Market                   chain.Address `json:"market"`
	PositionCollateralAmount chain.Uint    `json:"positionCollateralAmount"`
	BasePnlUsd               chain.Int     `json:"basePnlUsd"`
	RemainingCostUsd         chain.Uint    `json:"remainingCostUsd"`
	Step                     string        `json:"step"`
	Stamp                    Stamp         `json:"stamp"`
}

// RowKey implements [Row].
func (b BadDebt) RowKey() RowKey { return RowKey{BadDebts, b.OrderKey} }

// Transaction is who executed: the TX record of a transaction that carried our logs.
type Transaction struct {
	Tx    chain.Tx
	Stamp Stamp
}

// RowKey implements [Row].
func (t Transaction) RowKey() RowKey { return RowKey{Transactions, t.Tx.Hash} }
