package gmx

import (
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// MaxGas is the most gas a transaction may ask for (EIP-7825; BSC takes it over).
const MaxGas = 1 << 24

// Work is what an execution has to do, as far as it decides on the gas it needs.
type Work struct {
	Kind      job.Kind
	OrderType perp.OrderType // of orders
	// Prices counts the price reports that are brought along.
	Prices int
	// Swaps counts the markets of all swap paths, and one more for a decrease whose profit or collateral is swapped
	// (decreasePositionSwapType).
	Swaps int
	// Callback is the gas limit of the order's or request's own callback; 0 where it has none.
	Callback uint64
	// AutoCancel are the gas limits of the callbacks of the orders that end with the position, 0 for each without one.
	// Of a decrease that leaves the position open none is cancelled, but how much a decrease closes is only known
	// afterwards.
	AutoCancel []uint64
	// SavedCallback is true when the account has, or may have, saved a callback contract for the market. Liquidations
	// and deleveragings call it, with the most gas a callback may have. No event shows it.
	SavedCallback bool
	// OneToken is true when a deposit brings only one of the market's tokens.
	OneToken bool
	// MarketTokens is true when a GLV deposit brings market tokens, so that nothing is deposited in the market.
	MarketTokens bool
	// Markets counts the markets of a GLV.
	Markets int
}

// What executions cost that is no parameter of the exchange, in gas. The figures were measured on the original
// contracts of v2.2 by looking for the smallest limit with which a transaction executes: they hold what the gas that is
// kept back at each external call (1/64, EIP-150) adds, and no refunds. Another build of the contracts, or a market of
// another make, costs more or less: that is what the margins are for.
const (
	gasBegin = 200_000 // until an execution's start: intrinsic gas, calldata, access control; measured 181 000
	gasPrice = 200_000 // least for a price; measured 183 000 with a mock of the verification

	gasIncrease      = 2_750_000
	gasDecrease      = 2_850_000
	gasSwapOrder     = 950_000
	gasOrderSwap     = 700_000 // a swap of an order
	gasDeposit       = 1_950_000
	gasSecondToken   = 450_000 // a deposit's second token
	gasWithdrawal    = 2_050_000
	gasRequestSwap   = 650_000 // a swap of a deposit or withdrawal
	gasShift         = 4_200_000
	gasGlvDeposit    = 2_800_000
	gasGlvTokens     = 600_000 // a GLV deposit of market tokens
	gasGlvWithdrawal = 2_250_000
	gasGlvMarket     = 230_000 // valuing one market of a GLV
	gasGlvShift      = 4_340_000
	gasLiquidation   = 3_400_000 // measured 3 070 000 to 3 390 000, by the collateral
	// gasAdl: measured 2 930 000 to 3 610 000; most with a profit that is swapped into the collateral.
	gasAdl      = 3_650_000
	gasAdlState = 130_000

	// gasCancelExpired: measured 441 000 to 555 000 in all, by what is cancelled, with refunds taken off.
	gasCancelExpired = 650_000

	gasCallback       = 100_000 // around a callback
	gasSavedCallback  = 150_000 // around the saved callback contract's
	gasCancel         = 490_000 // cancelling an order with its position
	gasCancelCallback = 110_000 // more, if it has a callback
)

// The margins, in percent: what comes from words is exact but for the reports, what was measured elsewhere is not.
const (
	marginMeasured = 8 // on what was measured
	marginAll      = 3 // on everything
)

// Limit is the gas limit with which an execution does its work: it is taken in at its start, and has enough left at
// each point where the exchange asks.
//
// The entry check of orders and requests (GasUtils.validateExecutionGas) demands the estimate of the words beyond what
// came before it. That is not enough for all: a shift passes it with two thirds of what it takes, and is then cancelled
// in a transaction that succeeds. So the limit is the larger of what is demanded and what is needed. Liquidations and
// deleveragings are not checked at the start: they need what their work needs.
func (w GasWords) Limit(k Work) uint64 {
	before := gasBegin + max(w.OraclePrice, gasPrice)*uint64(k.Prices)
	estimated, checked := w.estimate(k)
	needed := percent(measuredGas(k), marginMeasured) + w.callbacks(k) + w.cancellations(k)
	if checked {
		needed = max(estimated+w.Additional, needed+w.Forwarded, kept(needed))
	}
	return min(percent(before+needed, marginAll), MaxGas)
}

// estimate is the exchange's own (GasUtils.estimateExecute…GasLimit), and whether it checks it.
func (w GasWords) estimate(k Work) (gas uint64, checked bool) {
	e := executions[k.Kind]
	if e.estimate == nil {
		return 0, false
	}
	return e.estimate(w, k), true
}

func (w GasWords) order(t perp.OrderType) uint64 {
	switch {
	case t.IsSwap():
		return w.SwapOrder
	case t.IsIncrease():
		return w.IncreaseOrder
	default:
		return w.DecreaseOrder
	}
}

// measuredGas is what the work itself takes; 0 for a kind that this build does not know.
func measuredGas(k Work) uint64 {
	if e, known := executions[k.Kind]; known {
		return e.measured(k)
	}
	if _, is := k.Kind.Cancels(); is {
		return gasCancelExpired
	}
	return 0
}

func measuredOrder(t perp.OrderType) uint64 {
	switch {
	case t.IsSwap():
		return gasSwapOrder
	case t.IsIncrease():
		return gasIncrease
	default:
		return gasDecrease
	}
}

// callbacks is what has to be there for the callbacks of the order or request itself: what they may burn, beyond the
// part that is kept back.
func (w GasWords) callbacks(k Work) (gas uint64) {
	if k.Callback > 0 {
		gas = kept(k.Callback+w.Refund) + gasCallback
	}
	if k.SavedCallback {
		gas += kept(w.MaxCallback) + gasSavedCallback
	}
	return gas
}

// cancellations is what has to be there to cancel the orders that end with the position. Before each of them the
// exchange demands what it takes to handle an error: the last one, whichever it is, may cost less than that.
func (w GasWords) cancellations(k Work) (gas uint64) {
	least := uint64(MaxGas)
	for _, callback := range k.AutoCancel {
		cost := uint64(gasCancel)
		if callback > 0 {
			cost += kept(callback+w.Refund) + gasCancelCallback
		}
		gas, least = gas+cost, min(least, cost)
	}
	if len(k.AutoCancel) > 0 && w.ErrorHandling > least {
		gas += w.ErrorHandling - least
	}
	return gas
}

// kept is what has to be there for a call to be given so much gas: 1/64 of what is there is kept back (EIP-150).
func kept(gas uint64) uint64 { return (gas*64 + 62) / 63 }

// percent adds percents.
func percent(gas, more uint64) uint64 { return gas + gas*more/100 }

// RaisedLimit is the gas limit to try next after a call with a limit reverted for want of gas, at most [MaxGas]. One
// cause shows exactly how much is missing; after any other the most is tried, because more may be missing further on.
func RaisedLimit(limit uint64, r Revert) uint64 {
	if r.Name != "InsufficientExecutionGas" {
		return MaxGas
	}
	var values [3]uint64
	for i, name := range []string{"startingGas", "estimatedGasLimit", "minAdditionalGasForExecution"} {
		value, is := r.uint(name)
		if !is {
			return MaxGas
		}
		values[i] = gasOf(value)
	}
	missing := max(values[1]+values[2], values[0]) - values[0]
	if missing == 0 {
		return MaxGas
	}
	return min(percent(limit+missing, marginAll), MaxGas)
}
