package gmx

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// execution is how the exchange executes one kind of job, and what that takes.
type execution struct {
	setting  string // names the handler in the configuration
	handler  func(Config) chain.Address
	selector [4]byte
	encode   func(job.Job, SetPrices) []byte
	// read is the inverse of encode, as far as it names the job.
	read func(w *walker) (key chain.Hash, isLong bool)
	// estimate is the exchange's own, which it checks at the start; nil where it checks none.
	estimate func(w GasWords, k Work) uint64
	// measured is what the work itself takes.
	measured func(k Work) uint64
}

// executions has one entry for each kind of job; a test says which is missing.
var executions = map[job.Kind]execution{
	job.Liquidation: {
		setting: "liquidation_handler", handler: func(c Config) chain.Address { return c.LiquidationHandler },
		selector: selectExecuteLiquidation,
		encode: func(j job.Job, p SetPrices) []byte {
			return ExecuteLiquidation(j.Account, j.Market, j.Collateral, j.IsLong, p)
		},
		read:     readPositionCall,
		measured: func(Work) uint64 { return gasLiquidation },
	},
	job.Adl: {
		setting: "adl_handler", handler: func(c Config) chain.Address { return c.AdlHandler },
		selector: selectExecuteAdl,
		encode: func(j job.Job, p SetPrices) []byte {
			return ExecuteAdl(j.Account, j.Market, j.Collateral, j.IsLong, j.SizeDeltaUsd, p)
		},
		read:     readPositionCall,
		measured: func(Work) uint64 { return gasAdl },
	},
	job.AdlState: {
		setting: "adl_handler", handler: func(c Config) chain.Address { return c.AdlHandler },
		selector: selectUpdateAdlState,
		encode:   func(j job.Job, p SetPrices) []byte { return UpdateAdlState(j.Market, j.IsLong, p) },
		read:     func(w *walker) (chain.Hash, bool) { return w.address(0).Hash(), w.bool(32) },
		measured: func(Work) uint64 { return gasAdlState },
	},
	job.Order: {
		setting: "order_handler", handler: func(c Config) chain.Address { return c.OrderHandler },
		selector: selectExecuteOrder, encode: byKey(ExecuteOrder), read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.order(k.OrderType) + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 { return measuredOrder(k.OrderType) + gasOrderSwap*uint64(k.Swaps) },
	},
	job.Deposit: {
		setting: "deposit_handler", handler: func(c Config) chain.Address { return c.DepositHandler },
		selector: selectExecuteDeposit, encode: byKey(ExecuteDeposit), read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.Deposit + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 {
			if k.OneToken {
				return gasDeposit + requestSwaps(k)
			}
			return gasDeposit + gasSecondToken + requestSwaps(k)
		},
	},
	job.Withdrawal: {
		setting: "withdrawal_handler", handler: func(c Config) chain.Address { return c.WithdrawalHandler },
		selector: selectExecuteWithdrawal, encode: byKey(ExecuteWithdrawal), read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.Withdrawal + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 { return gasWithdrawal + requestSwaps(k) },
	},
	job.Shift: {
		setting: "shift_handler", handler: func(c Config) chain.Address { return c.ShiftHandler },
		selector: selectExecuteShift, encode: byKey(ExecuteShift), read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.Shift + k.Callback },
		measured: func(Work) uint64 { return gasShift },
	},
	job.GlvDeposit: {
		setting: "glv_deposit_handler", handler: func(c Config) chain.Address { return c.GlvDepositHandler },
		selector: selectExecuteGlvDeposit, encode: byKey(ExecuteGlvDeposit), read: readKey,
		estimate: func(w GasWords, k Work) uint64 {
			if k.MarketTokens {
				return w.GlvDeposit + w.markets(k) + k.Callback
			}
			return w.GlvDeposit + w.markets(k) + w.Deposit + w.swaps(k) + k.Callback
		},
		measured: func(k Work) uint64 {
			if k.MarketTokens {
				return gasGlvTokens + glvMarkets(k)
			}
			return gasGlvDeposit + glvMarkets(k) + requestSwaps(k)
		},
	},
	job.GlvWithdrawal: {
		setting: "glv_withdrawal_handler", handler: func(c Config) chain.Address { return c.GlvWithdrawalHandler },
		selector: selectExecuteGlvWithdrawal, encode: byKey(ExecuteGlvWithdrawal), read: readKey,
		estimate: func(w GasWords, k Work) uint64 {
			return w.GlvWithdrawal + w.markets(k) + w.Withdrawal + w.swaps(k) + k.Callback
		},
		measured: func(k Work) uint64 { return gasGlvWithdrawal + glvMarkets(k) + requestSwaps(k) },
	},
	job.GlvShift: {
		setting: "glv_shift_handler", handler: func(c Config) chain.Address { return c.GlvShiftHandler },
		selector: selectExecuteGlvShift, encode: byKey(ExecuteGlvShift), read: readKey,
		estimate: func(w GasWords, _ Work) uint64 { return w.GlvShift },
		measured: func(k Work) uint64 { return gasGlvShift + glvMarkets(k) },
	},
}

func byKey(encode func(chain.Hash, SetPrices) []byte) func(job.Job, SetPrices) []byte {
	return func(j job.Job, p SetPrices) []byte { return encode(j.Key, p) }
}

func readKey(w *walker) (key chain.Hash, isLong bool) { return w.word(0), false }

func readPositionCall(w *walker) (key chain.Hash, isLong bool) {
	isLong = w.bool(3 * 32)
	return perp.PositionKey(w.address(0), w.address(32), w.address(2*32), isLong), isLong
}

func (w GasWords) swaps(k Work) uint64   { return w.SingleSwap * uint64(k.Swaps) }
func (w GasWords) markets(k Work) uint64 { return w.GlvPerMarket * uint64(k.Markets) }

func requestSwaps(k Work) uint64 { return gasRequestSwap * uint64(k.Swaps) }
func glvMarkets(k Work) uint64   { return gasGlvMarket * uint64(k.Markets) }
