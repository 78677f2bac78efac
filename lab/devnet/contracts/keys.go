package contracts

import (
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// RoleKey is the hash under which RoleStore keeps a role, for example "ORDER_KEEPER".
func RoleKey(role string) common.Hash {
	return BaseKey(role)
}

// BaseKey is the DataStore key of a name without arguments.
func BaseKey(name string) common.Hash {
	return crypto.Keccak256Hash(mustPack([]string{"string"}, name))
}

// Key is the DataStore key of a name with arguments: keccak256(abi.encode(baseKey, args...)). The arguments may be
// common.Address, bool, *big.Int and common.Hash. It panics on any other type, a fault of the caller's program.
func Key(name string, args ...any) common.Hash {
	base := BaseKey(name)
	if len(args) == 0 {
		return base
	}
	return crypto.Keccak256Hash(base.Bytes(), Encode(args...))
}

// Encode is the ABI encoding of values of the types that Key accepts: a key's arguments, which Config and its events
// carry beside the base key, or a price report.
func Encode(args ...any) []byte {
	types := make([]string, len(args))
	for i, arg := range args {
		types[i] = solidityType(arg)
	}
	return mustPack(types, args...)
}

// PositionKey identifies a position: one per account, market, collateral token and side.
func PositionKey(account, market, collateralToken common.Address, isLong bool) common.Hash {
	return crypto.Keccak256Hash(Encode(account, market, collateralToken, isLong))
}

func solidityType(v any) string {
	switch v.(type) {
	case common.Address:
		return "address"
	case bool:
		return "bool"
	case common.Hash:
		return "bytes32"
	default:
		return "uint256"
	}
}

func mustPack(types []string, values ...any) []byte {
	arguments := make(abi.Arguments, len(types))
	for i, name := range types {
		t, err := abi.NewType(name, "", nil)
		if err != nil {
			panic(fmt.Sprintf("solidity type %s: %v", name, err))
		}
		arguments[i] = abi.Argument{Type: t}
	}
	packed, err := arguments.Pack(values...)
	if err != nil {
		panic(fmt.Sprintf("packing %v: %v", types, err))
	}
	return packed
}
