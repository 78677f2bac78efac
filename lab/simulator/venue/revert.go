package venue

import (
	"encoding/binary"
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Gas that an execution burns. The figures of orders and liquidations were measured on the original contracts (loser
// and winner 573 k : 2.42 M and 1.30 M : 2.42 M); that of a role that is missing is a guess at "cheap".
const (
	gasWon           = 2_420_000
	gasOrderGone     = 573_000
	gasOrderEarly    = 854_000
	gasPositionGone  = 1_296_000
	gasPositionEarly = 1_909_000
	gasNoRole        = 100_000
	gasPayment       = 21_000
)

// revert is why a call reverts: the contracts' error data, and the gas burnt by then.
type revert struct {
	data []byte
	gas  uint64
}

// refuse encodes a custom error whose arguments are words.
func refuse(gas uint64, declaration string, args ...chain.Hash) *revert {
	data := selector(declaration)
	for _, a := range args {
		data = append(data, a[:]...)
	}
	return &revert{data, gas}
}

func selector(declaration string) []byte {
	hash := chain.Keccak256([]byte(declaration))
	return hash[:4:4]
}

func number(v uint64) (word chain.Hash) {
	binary.BigEndian.PutUint64(word[24:], v)
	return word
}

// quote is a string as the only dynamic argument of an error, behind its words.
func quote(s string) []byte {
	length := number(uint64(len(s)))
	return append(length[:], s+strings.Repeat("\x00", (32-len(s)%32)%32)...)
}

// unauthorized is refused before the reports are looked at.
func unauthorized(by chain.Address) *revert {
	r := refuse(gasNoRole, "Unauthorized(address,string)", by.Hash(), number(64))
	r.data = append(r.data, quote("ORDER_KEEPER")...)
	return r
}

func healthy(remaining chain.Int, required chain.Uint) *revert {
	r := refuse(gasPositionEarly, "PositionShouldNotBeLiquidated(string,int256,int256,int256)",
		number(4*32), remaining.Word(), minCollateralUsd.Bytes32(), required.Bytes32())
	r.data = append(r.data, quote("min collateral for leverage")...)
	return r
}

// gone is what the contracts say of an order, request or position that is not there: of requests by their names, the
// three oldest otherwise than the others. That a kind is asked for which is not played is a mistake in this package.
func gone(kind job.Kind, key chain.Hash) *revert {
	switch kind {
	case job.Liquidation:
		return refuse(gasPositionGone, "EmptyOrder()")
	case job.Order:
		return refuse(gasOrderGone, "EmptyOrder()")
	case job.Deposit, job.Withdrawal, job.Shift:
		return refuse(gasOrderGone, "Empty"+capital(kind)+"()")
	default:
		if kind.Names() != job.RequestKey {
			panic(fmt.Sprintf("venue: a job of kind %q is not played", kind))
		}
		return refuse(gasOrderGone, capital(kind)+"NotFound(bytes32)", key)
	}
}

func capital(kind job.Kind) string { return strings.ToUpper(string(kind[:1])) + string(kind[1:]) }

// early is the gas that a job burns whose moment has not come.
func early(kind job.Kind) uint64 {
	if kind == job.Liquidation {
		return gasPositionEarly
	}
	return gasOrderEarly
}
