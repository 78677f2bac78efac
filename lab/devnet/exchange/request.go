package exchange

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
)

// OrderType as in the contracts' Order.OrderType.
type OrderType uint8

// The order types users can create.
const (
	MarketSwap       OrderType = 0
	LimitSwap        OrderType = 1
	MarketIncrease   OrderType = 2
	LimitIncrease    OrderType = 3
	MarketDecrease   OrderType = 4
	LimitDecrease    OrderType = 5
	StopLossDecrease OrderType = 6
	StopIncrease     OrderType = 8
)

// Swaps reports whether the order touches no position: it has no market of its own, and its collateral is what is
// swapped.
func (t OrderType) Swaps() bool {
	return t == MarketSwap || t == LimitSwap
}

// Increases reports whether the order brings collateral and grows a position.
func (t OrderType) Increases() bool {
	return t == MarketIncrease || t == LimitIncrease || t == StopIncrease
}

// DecreaseSwap as in the contracts' Order.DecreasePositionSwapType: what a decrease swaps in its own market before it
// pays out.
type DecreaseSwap uint8

// The swaps of a decrease. One that fails leaves the tokens as they are.
const (
	NoSwap DecreaseSwap = iota
	PnlToCollateral
	CollateralToPnl
)

// Callback is the contract that a request wants to be called at its end, with so much gas; the zero Callback is none.
type Callback struct {
	Contract common.Address
	Gas      uint64
}

// OrderRequest is an order to be created. Money is USD with 30 decimals, prices are USD with 30 decimals per smallest
// unit; nil means zero, except for AcceptablePrice, where nil accepts any price.
type OrderRequest struct {
	Market     common.Address
	Collateral common.Address
	// Receiver of the output and of the refunded fee; zero means the account itself.
	Receiver common.Address
	Type     OrderType
	IsLong   bool
	SizeUSD  *big.Int
	// SwapPath are the markets through which an increase swaps its collateral, a decrease its output and a swap
	// everything.
	SwapPath []common.Address
	// UIFeeReceiver earns the fee that it has set, on swaps.
	UIFeeReceiver common.Address
	// DecreaseSwap is for decreases alone.
	DecreaseSwap DecreaseSwap
	// CollateralAmount in smallest units: paid in by an increase or a swap, taken out by a decrease.
	CollateralAmount *big.Int
	TriggerPrice     *big.Int
	AcceptablePrice  *big.Int
	// MinOutput is the least a decrease pays out, in USD with 30 decimals, or the least the path of another order
	// yields, in smallest units.
	MinOutput *big.Int
	// ValidFrom, in seconds, keeps a waiting order asleep until then.
	ValidFrom uint64
	// AutoCancel ends a protective order together with its position.
	AutoCancel bool
	Callback   Callback
	// ExecutionFee in wei; nil takes the default of 0.05.
	ExecutionFee *big.Int
}

// DepositRequest puts tokens into a pool; amounts in smallest units, MinMarketTokens with 18 decimals.
type DepositRequest struct {
	Market                  Market
	LongAmount, ShortAmount *big.Int
	// LongToken and ShortToken are paid in, and the paths make the market's tokens of them; the zero address is the
	// market's own token.
	LongToken, ShortToken common.Address
	LongPath, ShortPath   []common.Address
	MinMarketTokens       *big.Int
	Callback              Callback
	ExecutionFee          *big.Int
}

// WithdrawalRequest turns market tokens (18 decimals) back into the pool's tokens.
type WithdrawalRequest struct {
	Market       Market
	MarketTokens *big.Int
	// LongPath and ShortPath swap what is paid out; MinLong and MinShort are the least of what they yield.
	LongPath, ShortPath []common.Address
	MinLong, MinShort   *big.Int
	Callback            Callback
	ExecutionFee        *big.Int
}

// Gas limits of the users' transactions; see the package comment for what they use.
const (
	gasToRequest = 3_000_000
	gasToCancel  = 5_000_000
)

var (
	maxUint256 = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	// defaultExecutionFee is 0.05 of the native coin, in wei; what the execution does not use is refunded.
	defaultExecutionFee = big.NewInt(50_000_000_000_000_000)
)

// The layouts of the contracts' Create* structs; field names and order matter.
//
//nolint:staticcheck // UiFeeReceiver is what the encoder makes of the contracts' name
type (
	orderParams struct {
		Addresses                orderAddresses
		Numbers                  orderNumbers
		OrderType                uint8
		DecreasePositionSwapType uint8
		IsLong                   bool
		ShouldUnwrapNativeToken  bool
		AutoCancel               bool
		ReferralCode             [32]byte
		DataList                 [][32]byte
	}
	orderAddresses struct {
		Receiver, CancellationReceiver, CallbackContract, UiFeeReceiver, Market, InitialCollateralToken common.Address
		SwapPath                                                                                        []common.Address
	}
	orderNumbers struct {
		SizeDeltaUsd, InitialCollateralDeltaAmount, TriggerPrice, AcceptablePrice *big.Int
		ExecutionFee, CallbackGasLimit, MinOutputAmount, ValidFromTime            *big.Int
	}
	depositParams struct {
		Addresses               depositAddresses
		MinMarketTokens         *big.Int
		ShouldUnwrapNativeToken bool
		ExecutionFee            *big.Int
		CallbackGasLimit        *big.Int
		DataList                [][32]byte
	}
	depositAddresses struct {
		Receiver, CallbackContract, UiFeeReceiver, Market, InitialLongToken, InitialShortToken common.Address
		LongTokenSwapPath, ShortTokenSwapPath                                                  []common.Address
	}
	withdrawalParams struct {
		Addresses               withdrawalAddresses
		MinLongTokenAmount      *big.Int
		MinShortTokenAmount     *big.Int
		ShouldUnwrapNativeToken bool
		ExecutionFee            *big.Int
		CallbackGasLimit        *big.Int
		DataList                [][32]byte
	}
	withdrawalAddresses struct {
		Receiver, CallbackContract, UiFeeReceiver, Market common.Address
		LongTokenSwapPath, ShortTokenSwapPath             []common.Address
	}
)

// orderCall creates an order in one multicall: fee, collateral, order.
func (d *Deployment) orderCall(account common.Address, r OrderRequest) call {
	return d.ordersCall(account, r, big.NewInt(1), "createOrder")
}

// twapCall creates so many orders, each valid `interval` seconds after the one before. They share the collateral.
func (d *Deployment) twapCall(account common.Address, r OrderRequest, count, interval uint64) call {
	n := new(big.Int).SetUint64(count)
	return d.ordersCall(account, r, n, "createTwapOrder", n, new(big.Int).SetUint64(interval))
}

// ordersCall has the request's fee for each of the orders; spread follows the terms.
func (d *Deployment) ordersCall(account common.Address, r OrderRequest, count *big.Int, method string,
	spread ...any) call {
	fee := orDefault(r.ExecutionFee, defaultExecutionFee)
	receiver := r.Receiver
	if receiver == (common.Address{}) {
		receiver = account
	}
	b := d.batch(d.Contracts.OrderVault, new(big.Int).Mul(fee, count))
	if r.Type.Increases() || r.Type.Swaps() {
		b.tokens(r.Collateral, r.CollateralAmount)
	}
	b.add(method, append([]any{orderParams{
		Addresses: orderAddresses{
			Receiver: receiver, CancellationReceiver: account, Market: r.Market, InitialCollateralToken: r.Collateral,
			CallbackContract: r.Callback.Contract, SwapPath: r.SwapPath, UiFeeReceiver: r.UIFeeReceiver,
		},
		Numbers: orderNumbers{
			SizeDeltaUsd:                 orZero(r.SizeUSD),
			InitialCollateralDeltaAmount: orZero(r.CollateralAmount),
			TriggerPrice:                 orZero(r.TriggerPrice),
			AcceptablePrice:              r.acceptable(),
			ExecutionFee:                 fee,
			CallbackGasLimit:             new(big.Int).SetUint64(r.Callback.Gas),
			MinOutputAmount:              orZero(r.MinOutput),
			ValidFromTime:                new(big.Int).SetUint64(r.ValidFrom),
		},
		OrderType:                uint8(r.Type),
		DecreasePositionSwapType: uint8(r.DecreaseSwap),
		IsLong:                   r.IsLong,
		AutoCancel:               r.AutoCancel,
	}}, spread...)...)
	c := b.call()
	c.gas *= count.Uint64()
	return c
}

// updateCall replaces an order's terms; a fee, if any, is added to the order's.
func (d *Deployment) updateCall(key common.Hash, r OrderRequest) call {
	b := d.batch(d.Contracts.OrderVault, orZero(r.ExecutionFee))
	b.add("updateOrder", key, orZero(r.SizeUSD), r.acceptable(), orZero(r.TriggerPrice), orZero(r.MinOutput),
		new(big.Int).SetUint64(r.ValidFrom), r.AutoCancel)
	return b.call()
}

func (d *Deployment) depositCall(account common.Address, r DepositRequest) call {
	fee := orDefault(r.ExecutionFee, defaultExecutionFee)
	b := d.batch(d.Contracts.DepositVault, fee)
	long, short := orToken(r.LongToken, r.Market.Long), orToken(r.ShortToken, r.Market.Short)
	b.tokens(long, r.LongAmount)
	b.tokens(short, r.ShortAmount)
	b.add("createDeposit", depositParams{
		Addresses: depositAddresses{
			Receiver: account, CallbackContract: r.Callback.Contract, Market: r.Market.Address, InitialLongToken: long,
			InitialShortToken: short,
			LongTokenSwapPath: r.LongPath, ShortTokenSwapPath: r.ShortPath,
		},
		MinMarketTokens:  orZero(r.MinMarketTokens),
		ExecutionFee:     fee,
		CallbackGasLimit: new(big.Int).SetUint64(r.Callback.Gas),
	})
	return b.call()
}

func (d *Deployment) withdrawalCall(account common.Address, r WithdrawalRequest) call {
	fee := orDefault(r.ExecutionFee, defaultExecutionFee)
	b := d.batch(d.Contracts.WithdrawalVault, fee)
	b.tokens(r.Market.Address, r.MarketTokens)
	b.add("createWithdrawal", withdrawalParams{
		Addresses: withdrawalAddresses{
			Receiver: account, CallbackContract: r.Callback.Contract, Market: r.Market.Address,
			LongTokenSwapPath:  r.LongPath,
			ShortTokenSwapPath: r.ShortPath,
		},
		MinLongTokenAmount:  orZero(r.MinLong),
		MinShortTokenAmount: orZero(r.MinShort),
		ExecutionFee:        fee,
		CallbackGasLimit:    new(big.Int).SetUint64(r.Callback.Gas),
	})
	return b.call()
}

// cancelCall calls one of the router's cancel methods.
func (d *Deployment) cancelCall(method string, key common.Hash) call {
	return call{to: &d.Contracts.ExchangeRouter, data: pack(contracts.ExchangeRouter, method, key), gas: gasToCancel}
}

// batch is a multicall of the router: first the fee, then the tokens, then the request.
type batch struct {
	router, vault common.Address
	fee           *big.Int
	steps         [][]byte
}

func (d *Deployment) batch(vault common.Address, fee *big.Int) *batch {
	b := &batch{router: d.Contracts.ExchangeRouter, vault: vault, fee: fee}
	if fee.Sign() > 0 {
		b.add("sendWnt", vault, fee)
	}
	return b
}

func (b *batch) add(method string, args ...any) {
	b.steps = append(b.steps, pack(contracts.ExchangeRouter, method, args...))
}

func (b *batch) tokens(token common.Address, amount *big.Int) {
	if amount != nil && amount.Sign() > 0 {
		b.add("sendTokens", token, b.vault, amount)
	}
}

func (b *batch) call() call {
	return call{to: &b.router, data: pack(contracts.ExchangeRouter, "multicall", b.steps), value: b.fee,
		gas: gasToRequest}
}

// acceptable is the order's acceptable price, or the one that accepts any: the highest for a buyer, zero for a seller.
func (r OrderRequest) acceptable() *big.Int {
	switch {
	case r.AcceptablePrice != nil:
		return r.AcceptablePrice
	case r.Type.Increases() == r.IsLong:
		return maxUint256
	default:
		return new(big.Int)
	}
}

func orToken(token, fallback common.Address) common.Address {
	if token == (common.Address{}) {
		return fallback
	}
	return token
}

func orZero(v *big.Int) *big.Int {
	return orDefault(v, new(big.Int))
}

func orDefault(v, fallback *big.Int) *big.Int {
	if v == nil {
		return fallback
	}
	return v
}
