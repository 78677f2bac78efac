package job

import (
	"perpkeeper/pkg/chain"
)

// Settlement is the result of our transaction for the owner of the position it closed or decreased (LIQ-11), read from
// the logs of that transaction alone. USD values and prices have 30 decimals; amounts are in the smallest unit of the
// position's collateral token. Who executed it is the signer of the [Result].
type Settlement struct {
	OrderKey       chain.Hash `json:"order_key"`
	SizeDeltaUsd   chain.Uint `json:"size_delta_usd"`
	SizeLeftUsd    chain.Uint `json:"size_left_usd"` // zero: the position is closed
	ExecutionPrice chain.Uint `json:"execution_price"`
	PnlUsd         chain.Int  `json:"pnl_usd"` // before price impact and fees
	ImpactUsd      chain.Int  `json:"price_impact_usd"`
	// CollateralDelta is what was taken from the position's collateral, to pay for its costs and to be returned;
	// CollateralLeft is still in it.
	CollateralDelta chain.Uint `json:"collateral_delta_amount"`
	CollateralLeft  chain.Uint `json:"collateral_left_amount"`
	Fees            Fees       `json:"fees"`
	// Insolvent is true when collateral and profit did not cover the costs (InsolventClose): BadDebtUsd is what they
	// lacked, at the step that is named. Such a close collects no fees.
	Insolvent   bool       `json:"insolvent"`
	BadDebtUsd  chain.Uint `json:"bad_debt_usd"`
	BadDebtStep string     `json:"bad_debt_step,omitempty"`
	// Returned is what left the market for its receiver, by token, for liquidations and deleveragings. Orders may swap
	// what they return over other markets; for them there is nothing here.
	Returned []Payment `json:"returned,omitempty"`
}

// Fees are what a decrease cost, in the smallest unit of the position's collateral token (PositionFeesCollected).
type Fees struct {
	Position    chain.Uint `json:"position"` // before discounts
	Borrowing   chain.Uint `json:"borrowing"`
	Funding     chain.Uint `json:"funding"`
	Liquidation chain.Uint `json:"liquidation"`
	// Total is all that was charged: also the fee of an interface, and less the discounts.
	Total chain.Uint `json:"total"`
}

// Payment is an amount of a token, in its smallest unit. An amount of the wrapped native token may have been paid in
// coins.
type Payment struct {
	Token  chain.Address `json:"token"`
	Amount chain.Uint    `json:"amount"`
}
