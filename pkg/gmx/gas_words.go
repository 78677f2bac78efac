package gmx

import (
	"maps"
	"reflect"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// GasWords are the exchange's own words on gas, in gas: parameters of its DataStore, each under the base key of its
// name, the tag. Every deployment sets its own.
type GasWords struct { //nolint:recvcheck // one method fills it, the others read
	IncreaseOrder uint64 `word:"INCREASE_ORDER_GAS_LIMIT"`
	DecreaseOrder uint64 `word:"DECREASE_ORDER_GAS_LIMIT"`
	SwapOrder     uint64 `word:"SWAP_ORDER_GAS_LIMIT"`
	SingleSwap    uint64 `word:"SINGLE_SWAP_GAS_LIMIT"`
	Deposit       uint64 `word:"DEPOSIT_GAS_LIMIT"`
	Withdrawal    uint64 `word:"WITHDRAWAL_GAS_LIMIT"`
	Shift         uint64 `word:"SHIFT_GAS_LIMIT"`
	GlvPerMarket  uint64 `word:"GLV_PER_MARKET_GAS_LIMIT"`
	GlvDeposit    uint64 `word:"GLV_DEPOSIT_GAS_LIMIT"`
	GlvWithdrawal uint64 `word:"GLV_WITHDRAWAL_GAS_LIMIT"`
	GlvShift      uint64 `word:"GLV_SHIFT_GAS_LIMIT"`
	// Additional is demanded at an execution's start beyond its estimate.
	Additional uint64 `word:"MIN_ADDITIONAL_GAS_FOR_EXECUTION"`
	// Forwarded is kept back during an execution, for handling its failure.
	Forwarded uint64 `word:"MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD"`
	// ErrorHandling has to be left when an order of a position that closes is cancelled.
	ErrorHandling uint64 `word:"MIN_HANDLE_EXECUTION_ERROR_GAS"`
	// MaxCallback is what a saved callback contract is given.
	MaxCallback uint64 `word:"MAX_CALLBACK_GAS_LIMIT"`
	// Refund is what a callback contract is given to take back what is left of an execution fee.
	Refund uint64 `word:"REFUND_EXECUTION_FEE_GAS_LIMIT"`
	// OraclePrice is the exchange's own allowance for verifying the report of one price.
	OraclePrice uint64 `word:"ESTIMATED_GAS_FEE_PER_ORACLE_PRICE"`
}

// gasWords are the indices of the fields, by the words' names.
var gasWords = func() map[string]int {
	fields, all := reflect.TypeFor[GasWords](), map[string]int{}
	for i := range fields.NumField() {
		all[fields.Field(i).Tag.Get("word")] = i
	}
	return all
}()

// DefaultGasWords are those of the reference deployments (v2.2, base configuration): the floor of what is assumed while
// the exchange's own are not known.
func DefaultGasWords() GasWords {
	return GasWords{
		IncreaseOrder: 3_900_000, DecreaseOrder: 3_900_000, SwapOrder: 3_400_000, SingleSwap: 1_000_000,
		Deposit: 2_050_000, Withdrawal: 1_500_000,
		Shift: 2_500_000, GlvPerMarket: 100_000, GlvDeposit: 2_000_000, GlvWithdrawal: 2_000_000, GlvShift: 3_000_000,
		Additional: 1_000_000, Forwarded: 1_000_000, ErrorHandling: 1_200_000, MaxCallback: 2_000_000, Refund: 200_000,
		OraclePrice: 250_000,
	}
}

// GasWordNames lists the names of all words, sorted.
func GasWordNames() []string { return slices.Sorted(maps.Keys(gasWords)) }

// GasWordKeys are the DataStore keys of all words, in the order of [GasWordNames].
func GasWordKeys() []chain.Hash {
	var keys []chain.Hash
	for _, name := range GasWordNames() {
		keys = append(keys, perp.DataStoreKey(name))
	}
	return keys
}

// Set gives the word of a name a value, and reports whether there is such a word. What no transaction can have is cut
// down to [MaxGas].
func (w *GasWords) Set(name string, value chain.Uint) (known bool) {
	field, known := gasWords[name]
	if known {
		reflect.ValueOf(w).Elem().Field(field).SetUint(gasOf(value))
	}
	return known
}

// GasWordsOf are the words in force: those among some parameters, and the default of each that is not.
func GasWordsOf(parameters []perp.Parameter) GasWords {
	w := DefaultGasWords()
	names := map[chain.Hash]string{}
	for _, name := range GasWordNames() {
		names[perp.DataStoreKey(name)] = name
	}
	for _, p := range parameters {
		w.Set(names[p.Key], p.Uint())
	}
	return w
}

// gasOf reads an amount of gas. More than a transaction can have is as much as it can have.
func gasOf(u chain.Uint) uint64 {
	if n, fits := u.Uint64(); fits {
		return min(n, MaxGas)
	}
	return MaxGas
}

// OrderWork is what executing an order has to do. Closing are the open orders that end with its position, among which
// it may be itself; they matter to decreases.
func OrderWork(o perp.Order, closing []perp.Order) Work {
	w := Work{Kind: job.Order, OrderType: o.OrderType, Swaps: len(o.SwapPath), Callback: gasOf(o.CallbackGasLimit)}
	if o.OrderType.IsIncrease() || o.OrderType.IsSwap() {
		return w
	}
	if !o.DecreasePositionSwapType.IsZero() {
		w.Swaps++
	}
	for _, c := range closing {
		if c.Key != o.Key {
			w.AutoCancel = append(w.AutoCancel, gasOf(c.CallbackGasLimit))
		}
	}
	return w
}

// ClosingWork is what a liquidation or deleveraging of a position has to do, with the open orders that end with it. No
// event says whether its account has saved a callback contract, and one that is saved between a look at it and the
// execution would make the execution fail: so there always may be one.
func ClosingWork(kind job.Kind, closing []perp.Order) Work {
	w := Work{Kind: kind, SavedCallback: true}
	for _, c := range closing {
		w.AutoCancel = append(w.AutoCancel, gasOf(c.CallbackGasLimit))
	}
	return w
}

// RequestWork is what executing a deposit, withdrawal or shift has to do; of one of a GLV markets is how many the GLV
// has.
func RequestWork(r perp.Request, markets int) Work {
	callback, _ := r.Fields["callbackGasLimit"].(chain.Uint)
	marketTokens, _ := r.Fields["isMarketTokenDeposit"].(bool)
	return Work{
		Kind: job.Kind(r.Kind), Callback: gasOf(callback), Swaps: len(r.SwapPath()),
		OneToken:     isZero(r, "initialLongTokenAmount") || isZero(r, "initialShortTokenAmount"),
		MarketTokens: marketTokens, Markets: markets,
	}
}

func isZero(r perp.Request, name string) bool {
	amount, is := r.Fields[name].(chain.Uint)
	return is && amount.IsZero()
}
