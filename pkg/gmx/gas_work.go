package gmx

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

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
	callback, _ := r.Fields["callbackGasLimit"].(perp.Uint)
	marketTokens, _ := r.Fields["isMarketTokenDeposit"].(bool)
	return Work{
		Kind: job.OfRequest(r.Kind), Callback: gasOf(callback), Swaps: pathLength(r, "longTokenSwapPath") +
			pathLength(r, "shortTokenSwapPath"),
		OneToken:     isZero(r, "initialLongTokenAmount") || isZero(r, "initialShortTokenAmount"),
		MarketTokens: marketTokens, Markets: markets,
	}
}

func pathLength(r perp.Request, name string) int {
	path, _ := r.Fields[name].([]chain.Address)
	return len(path)
}

func isZero(r perp.Request, name string) bool {
	amount, is := r.Fields[name].(perp.Uint)
	return is && amount.IsZero()
}
