package gmx

import (
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Adjustment is a call of the exchange's Config contract, which only an account with the role CONFIG_KEEPER may make.
type Adjustment struct {
	Data []byte
	// Undo is the calldata that sets back what Data sets.
	Undo []byte
	// Does describes, for people, what Data does.
	Does string
}

var (
	selectSetUint = selector("setUint(bytes32,bytes,uint256)")
	selectSetBool = selector("setBool(bytes32,bytes,bool)")
)

const (
	createOrderDisabled = "CREATE_ORDER_FEATURE_DISABLED"
	minCollateralFactor = "MIN_COLLATERAL_FACTOR"
)

// PausePositions makes the exchange refuse new orders that would open or enlarge positions. Orders that close them, and
// those that wait already, are not touched. While the venue is upgraded, each of its order handlers takes orders.
func (v Venue) PausePositions() ([]Adjustment, error) {
	var all []Adjustment
	for _, h := range v.Handlers {
		if !slices.Contains(h.Kinds, job.Order) {
			continue
		}
		for _, t := range []perp.OrderType{perp.MarketIncrease, perp.LimitIncrease, perp.StopIncrease} {
			handler, kind := h.Address.Hash(), wordOf(uint64(t))
			args := slices.Concat(handler[:], kind[:])
			set := func(disabled bool) []byte {
				return adjust(selectSetBool, createOrderDisabled, args, perp.BoolWord(disabled))
			}
			all = append(all, Adjustment{Data: set(true), Undo: set(false),
				Does: fmt.Sprintf("no new %s orders by %s", t, h.Address)})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the venue has no contract that executes orders")
	}
	return all, nil
}

// RaiseMargin multiplies the collateral that a market demands of positions that are opened or enlarged
// (MIN_COLLATERAL_FACTOR, 30 decimals), now at current, by so many percent. The factor at which positions are
// liquidated is another one and stays: raising that would liquidate who is healthy.
func RaiseMargin(market chain.Address, current chain.Uint, percent uint64) Adjustment {
	raised := current.MulDiv(chain.U64(percent), chain.U64(100))
	args := market.Hash()
	set := func(to chain.Uint) []byte { return adjust(selectSetUint, minCollateralFactor, args[:], to.Bytes32()) }
	return Adjustment{
		Data: set(raised), Undo: set(current), Does: fmt.Sprintf("market %s: %s from %s to %s", market,
			minCollateralFactor, current, raised),
	}
}

// AskMargin is the call of the DataStore that returns the factor which [RaiseMargin] raises.
func AskMargin(market chain.Address) []byte {
	key := perp.DataStoreKey(minCollateralFactor, market.Hash())
	return getter(getUint, key)
}

// adjust encodes a setter of Config: the base key, the further arguments of the key as bytes, the value.
func adjust(selector [4]byte, name string, args []byte, value chain.Hash) []byte {
	base := perp.BaseKey(name)
	out := append(selector[:], base[:]...)
	out = appendNumber(out, 3*32)
	out = append(out, value[:]...)
	out = appendNumber(out, len(args))
	return append(out, args...) // words already, so that nothing is padded
}
