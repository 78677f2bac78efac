package gmx

import (
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Config names the contracts of one exchange. Every deployment has its own addresses, so there are no defaults.
type Config struct { //nolint:recvcheck // one method fills it, the others read
	EventEmitter         chain.Address `toml:"event_emitter" help:"the contract that emits every event"`
	DataStore            chain.Address `toml:"data_store" help:"the contract that holds every parameter"`
	Oracle               chain.Address `toml:"oracle" help:"the contract that takes price reports"`
	OrderHandler         chain.Address `toml:"order_handler" help:"executes orders"`
	LiquidationHandler   chain.Address `toml:"liquidation_handler" help:"executes liquidations"`
	AdlHandler           chain.Address `toml:"adl_handler" help:"executes auto-deleveraging"`
	DepositHandler       chain.Address `toml:"deposit_handler" help:"executes deposits"`
	WithdrawalHandler    chain.Address `toml:"withdrawal_handler" help:"executes withdrawals"`
	ShiftHandler         chain.Address `toml:"shift_handler" help:"executes shifts; empty where the exchange has none"`
	GlvDepositHandler    chain.Address `toml:"glv_deposit_handler" help:"executes GLV deposits; empty where the exchange has none"`
	GlvWithdrawalHandler chain.Address `toml:"glv_withdrawal_handler" help:"executes GLV withdrawals; empty where the exchange has none"`
	GlvShiftHandler      chain.Address `toml:"glv_shift_handler" help:"executes GLV shifts; empty where the exchange has none"`
}

// execution is how the exchange executes one kind of job, and what that takes.
type execution struct {
	setting string // names the handler in the configuration
	handler func(Config) chain.Address
	// method is the call without its last argument, the price reports; words are the values of the others.
	method string
	words  func(job.Job) []chain.Hash
	// read is the inverse of words, as far as it names the job.
	read func(w *walker) (key chain.Hash, isLong bool)
	// estimate is the exchange's own, which it checks at the start; nil where it checks none.
	estimate func(w GasWords, k Work) uint64
	// measured is what the work itself takes.
	measured func(k Work) uint64
	// loss is what a transaction costs that comes too late, in thousandths of what one costs that comes in time, on the
	// devnet's contracts: TestLossRatio of test/bench, and TestGas of the exchange; orders as the mean of three kinds.
	loss uint64
}

func (e execution) selector() [4]byte { return selector(e.method + "," + pricesType + ")") }

// executions has one entry for each kind of job; a test says which is missing.
var executions = map[job.Kind]execution{
	job.Liquidation: {
		setting: "liquidation_handler", handler: func(c Config) chain.Address { return c.LiquidationHandler },
		method: "executeLiquidation(address,address,address,bool", words: positionWords, read: readPositionCall,
		measured: func(Work) uint64 { return gasLiquidation }, loss: 441,
	},
	job.Adl: {
		setting: "adl_handler", handler: func(c Config) chain.Address { return c.AdlHandler },
		method: "executeAdl(address,address,address,bool,uint256", // the last is how much of it is closed
		words:  func(j job.Job) []chain.Hash { return append(positionWords(j), j.SizeDeltaUsd.Bytes32()) },
		read:   readPositionCall, measured: func(Work) uint64 { return gasAdl }, loss: 519,
	},
	job.AdlState: {
		setting: "adl_handler", handler: func(c Config) chain.Address { return c.AdlHandler },
		// compares a side's profits with the pool and says whether it is to be deleveraged
		method:   "updateAdlState(address,bool",
		words:    func(j job.Job) []chain.Hash { return []chain.Hash{j.Market.Hash(), perp.BoolWord(j.IsLong)} },
		read:     func(w *walker) (chain.Hash, bool) { return w.address(0).Hash(), w.bool(32) },
		measured: func(Work) uint64 { return gasAdlState }, loss: 1000, // whoever comes second does the same again
	},
	job.Order: {
		setting: "order_handler", handler: func(c Config) chain.Address { return c.OrderHandler },
		method: "executeOrder(bytes32", words: keyWord, read: readKey, loss: 416,
		estimate: func(w GasWords, k Work) uint64 { return w.order(k.OrderType) + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 { return measuredOrder(k.OrderType) + gasOrderSwap*uint64(k.Swaps) },
	},
	job.Deposit: {
		setting: "deposit_handler", handler: func(c Config) chain.Address { return c.DepositHandler },
		method: "executeDeposit(bytes32", words: keyWord, read: readKey, loss: 604,
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
		method: "executeWithdrawal(bytes32", words: keyWord, read: readKey, loss: 601,
		estimate: func(w GasWords, k Work) uint64 { return w.Withdrawal + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 { return gasWithdrawal + requestSwaps(k) },
	},
	job.Shift: {
		setting: "shift_handler", handler: func(c Config) chain.Address { return c.ShiftHandler },
		method: "executeShift(bytes32", words: keyWord, read: readKey, loss: 458,
		estimate: func(w GasWords, k Work) uint64 { return w.Shift + k.Callback },
		measured: func(Work) uint64 { return gasShift },
	},
	job.GlvDeposit: {
		setting: "glv_deposit_handler", handler: func(c Config) chain.Address { return c.GlvDepositHandler },
		method: "executeGlvDeposit(bytes32", words: keyWord, read: readKey, loss: 489,
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
		method: "executeGlvWithdrawal(bytes32", words: keyWord, read: readKey, loss: 491,
		estimate: func(w GasWords, k Work) uint64 {
			return w.GlvWithdrawal + w.markets(k) + w.Withdrawal + w.swaps(k) + k.Callback
		},
		measured: func(k Work) uint64 { return gasGlvWithdrawal + glvMarkets(k) + requestSwaps(k) },
	},
	job.GlvShift: {
		setting: "glv_shift_handler", handler: func(c Config) chain.Address { return c.GlvShiftHandler },
		method: "executeGlvShift(bytes32", words: keyWord, read: readKey, loss: 514,
		estimate: func(w GasWords, _ Work) uint64 { return w.GlvShift },
		measured: func(k Work) uint64 { return gasGlvShift + glvMarkets(k) },
	},
}

// DefaultConfig returns the configuration that names nothing yet.
func DefaultConfig() Config { return Config{} }

// Validate demands the one address that every process needs. Handlers are demanded by [Config.Demand], and when a job
// needs one, by [Config.Call].
func (c Config) Validate() error {
	if c.EventEmitter.IsZero() {
		return errors.New("event_emitter: no address given; set it to the exchange's EventEmitter")
	}
	return nil
}

// Demand returns an error that lists the handlers that are missing of those that execute the given kinds.
func (c Config) Demand(kinds ...job.Kind) error {
	var problems []error
	for _, kind := range kinds {
		if e := executions[kind]; e.handler(c).IsZero() {
			problems = append(problems, fmt.Errorf("venue.%s: no address given; no %s could be executed (keeperctl "+
				"addresses finds the contracts)", e.setting, kind))
		}
	}
	return errors.Join(problems...)
}

// Call returns the contract and the calldata that execute a job with the given price reports.
func (c Config) Call(j job.Job, prices SetPrices) (to chain.Address, calldata []byte, err error) {
	e, known := executions[j.Kind]
	if !known {
		return to, nil, fmt.Errorf("job %s: no call executes a %q", j.ID, j.Kind)
	}
	if to = e.handler(c); to.IsZero() {
		return to, nil, fmt.Errorf("job %s: %s is not configured", j.ID, e.setting)
	}
	if err := prices.check(); err != nil {
		return to, nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	return to, e.encode(j, prices), nil
}

// LossRatio is what a transaction of a kind costs that comes too late, in thousandths of what one costs that comes in
// time; 0 for a kind that this build does not know.
func LossRatio(k job.Kind) uint64 { return executions[k].loss }

// encode returns the calldata that executes a job.
func (e execution) encode(j job.Job, p SetPrices) []byte {
	return call(selectors[j.Kind], p, e.words(j)...)
}

func keyWord(j job.Job) []chain.Hash { return []chain.Hash{j.Key} }

func positionWords(j job.Job) []chain.Hash {
	return []chain.Hash{j.Account.Hash(), j.Market.Hash(), j.Collateral.Hash(), perp.BoolWord(j.IsLong)}
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
