package gmx

import (
	"errors"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Config names an exchange by one of its contracts, by which the others are found on the chain (see [Venue]). Every
// deployment has its own, so there is no default.
type Config struct {
	DataStore chain.Address `toml:"data_store" help:"the exchange's DataStore: its other contracts are found from it on the chain, at the start and again every minute"`
	// EventEmitter is for venues whose DataStore does not lead to it, as stand-ins in tests do not.
	EventEmitter chain.Address `toml:"event_emitter" help:"the contract whose events the scanner records; empty = those by which the exchange's handlers emit"`
	// IgnoreEvents is that of [Events].
	IgnoreEvents []string `toml:"ignore_events" help:"names of events that this build does not know and that touch no rows, as the operator knows: they neither stop a partition nor alarm"`
}

// Events is the part of the [venue] section that a reader of the exchange's events needs.
type Events struct {
	IgnoreEvents []string `toml:"ignore_events" help:"names of events that this build does not know and that touch no rows, as the operator knows: they neither stop a partition nor alarm"`
}

// Decoder returns a decoder for logs that were chosen already; see [NewDecoder]. An event that it knows is never
// ignored.
func (e Events) Decoder() *Decoder {
	d := NewDecoder()
	d.ignored = map[string]bool{}
	for _, name := range e.IgnoreEvents {
		d.ignored[name] = true
	}
	return d
}

// Decoder is [Events.Decoder].
func (c Config) Decoder() *Decoder { return Events{c.IgnoreEvents}.Decoder() }

// The roles that executions ask of whoever sends them, and that of a venue's own contracts.
const (
	controllerRole  = "CONTROLLER"
	orderRole       = "ORDER_KEEPER"
	liquidationRole = "LIQUIDATION_KEEPER"
	adlRole         = "ADL_KEEPER"
	frozenRole      = "FROZEN_ORDER_KEEPER"
)

// execution is how the exchange executes one kind of job, and what that takes.
type execution struct {
	// role is what a signer needs for it.
	role string
	// method is the call without its last argument, the price reports; words are the values of the others.
	method string
	words  func(job.Job) []chain.Hash
	// read is the inverse of words, as far as it names the job.
	read func(w *walker) (key chain.Hash, isLong bool)
	// estimate is the exchange's own, which it checks at the start; nil where it checks none.
	estimate func(w GasWords, k Work) uint64
	// measured is what the work itself takes.
	measured func(k Work) uint64
}

func (e execution) selector() [4]byte { return selector(e.method + "," + pricesType + ")") }

// cancellations are how the exchange cancels what expired, from v2.2c on: by the handler that would have executed it,
// and without prices.
var cancellations = func() map[job.Kind][4]byte {
	all := map[job.Kind][4]byte{}
	for _, kind := range job.Cancels() {
		all[kind] = selector(string(kind) + "(bytes32)")
	}
	return all
}()

// executions has one entry for each kind of job; a test says which is missing.
var executions = map[job.Kind]execution{
	job.Liquidation: { // of a whole position, at market: it takes no size (LIQ-9)
		role:   liquidationRole,
		method: "executeLiquidation(address,address,address,bool", words: positionWords, read: readPositionCall,
		measured: func(Work) uint64 { return gasLiquidation },
	},
	job.Adl: {
		role:   adlRole,
		method: "executeAdl(address,address,address,bool,uint256", // the last is how much of it is closed
		words:  func(j job.Job) []chain.Hash { return append(positionWords(j), j.SizeDeltaUsd.Bytes32()) },
		read:   readPositionCall, measured: func(Work) uint64 { return gasAdl },
	},
	job.AdlState: {
		role: adlRole,
		// compares a side's profits with the pool and says whether it is to be deleveraged
		method:   "updateAdlState(address,bool",
		words:    func(j job.Job) []chain.Hash { return []chain.Hash{j.Market.Hash(), perp.BoolWord(j.IsLong)} },
		read:     func(w *walker) (chain.Hash, bool) { return w.address(0).Hash(), w.bool(32) },
		measured: func(Work) uint64 { return gasAdlState },
	},
	job.Order: {
		role:   orderRole,
		method: "executeOrder(bytes32", words: keyWord, read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.order(k.OrderType) + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 { return measuredOrder(k.OrderType) + gasOrderSwap*uint64(k.Swaps) },
	},
	job.Deposit: {
		role:   orderRole,
		method: "executeDeposit(bytes32", words: keyWord, read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.Deposit + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 {
			if k.OneToken {
				return gasDeposit + requestSwaps(k)
			}
			return gasDeposit + gasSecondToken + requestSwaps(k)
		},
	},
	job.Withdrawal: {
		role:   orderRole,
		method: "executeWithdrawal(bytes32", words: keyWord, read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.Withdrawal + w.swaps(k) + k.Callback },
		measured: func(k Work) uint64 { return gasWithdrawal + requestSwaps(k) },
	},
	job.Shift: {
		role:   orderRole,
		method: "executeShift(bytes32", words: keyWord, read: readKey,
		estimate: func(w GasWords, k Work) uint64 { return w.Shift + k.Callback },
		measured: func(Work) uint64 { return gasShift },
	},
	job.GlvDeposit: {
		role:   orderRole,
		method: "executeGlvDeposit(bytes32", words: keyWord, read: readKey,
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
		role:   orderRole,
		method: "executeGlvWithdrawal(bytes32", words: keyWord, read: readKey,
		estimate: func(w GasWords, k Work) uint64 {
			return w.GlvWithdrawal + w.markets(k) + w.Withdrawal + w.swaps(k) + k.Callback
		},
		measured: func(k Work) uint64 { return gasGlvWithdrawal + glvMarkets(k) + requestSwaps(k) },
	},
	job.GlvShift: {
		role:   orderRole,
		method: "executeGlvShift(bytes32", words: keyWord, read: readKey,
		estimate: func(w GasWords, _ Work) uint64 { return w.GlvShift },
		measured: func(k Work) uint64 { return gasGlvShift + glvMarkets(k) },
	},
}

// executes is the kind whose executions a kind goes by: its own, or that of what it cancels.
func executes(k job.Kind) job.Kind {
	if of, is := k.Cancels(); is {
		return of
	}
	return k
}

// DefaultConfig returns the configuration that names nothing yet.
func DefaultConfig() Config { return Config{} }

// Validate demands the one address that everything else follows from.
func (c Config) Validate() error {
	if c.DataStore.IsZero() {
		return errors.New("data_store: no address given; set it to the exchange's DataStore")
	}
	return nil
}

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
