package perp

import (
	"strconv"

	"perpkeeper/pkg/chain"
)

// OrderType is the contract's enum (Order.sol, v2.2).
type OrderType uint8

// The order types.
const (
	MarketSwap OrderType = iota
	LimitSwap
	MarketIncrease
	LimitIncrease
	MarketDecrease
	LimitDecrease
	StopLossDecrease
	Liquidation
	StopIncrease
)

var orderTypeNames = [...]string{
	"market swap", "limit swap", "market increase", "limit increase", "market decrease", "limit decrease",
	"stop-loss decrease", "liquidation", "stop increase",
}

// String returns the type in words.
func (t OrderType) String() string {
	if int(t) < len(orderTypeNames) {
		return orderTypeNames[t]
	}
	return "order type " + strconv.Itoa(int(t))
}

// IsMarket reports whether an order of this type executes at once and expires.
func (t OrderType) IsMarket() bool {
	return t == MarketSwap || t == MarketIncrease || t == MarketDecrease
}

// IsIncrease reports whether an order of this type opens or grows a position.
func (t OrderType) IsIncrease() bool {
	return t == MarketIncrease || t == LimitIncrease || t == StopIncrease
}

// IsSwap reports whether an order of this type touches no position.
func (t OrderType) IsSwap() bool { return t == MarketSwap || t == LimitSwap }

// Status is where an order or request stands on chain (TIER-6): the name of the last event that changed it.
type Status string

// The statuses of orders and requests. Executed and Cancelled are final; Frozen is not: an update unfreezes.
const (
	Created   Status = "Created"
	Updated   Status = "Updated"
	Executed  Status = "Executed"
	Cancelled Status = "Cancelled"
	Frozen    Status = "Frozen"
)

// Pending reports whether an ordinary keeper may still execute (TIER-4). A frozen order needs the frozen-order role.
func (s Status) Pending() bool { return s == Created || s == Updated }

// Final reports whether nothing can happen to the order or request any more, short of a reorg.
func (s Status) Final() bool { return s == Executed || s == Cancelled }

// Order is an order as OrderCreated announced it and later events changed it. The JSON names are the events' own.
type Order struct {
	Key                          chain.Hash      `json:"key"`
	Account                      chain.Address   `json:"account"`
	Receiver                     chain.Address   `json:"receiver"`
	CallbackContract             chain.Address   `json:"callbackContract"`
	UIFeeReceiver                chain.Address   `json:"uiFeeReceiver"`
	Market                       chain.Address   `json:"market"`
	InitialCollateralToken       chain.Address   `json:"initialCollateralToken"`
	CancellationReceiver         chain.Address   `json:"cancellationReceiver"`
	SwapPath                     []chain.Address `json:"swapPath"`
	OrderType                    OrderType       `json:"orderType,string"`
	DecreasePositionSwapType     chain.Uint      `json:"decreasePositionSwapType"`
	SizeDeltaUsd                 chain.Uint      `json:"sizeDeltaUsd"`
	InitialCollateralDeltaAmount chain.Uint      `json:"initialCollateralDeltaAmount"`
	TriggerPrice                 chain.Uint      `json:"triggerPrice"`
	AcceptablePrice              chain.Uint      `json:"acceptablePrice"`
	ExecutionFee                 chain.Uint      `json:"executionFee"`
	CallbackGasLimit             chain.Uint      `json:"callbackGasLimit"`
	MinOutputAmount              chain.Uint      `json:"minOutputAmount"`
	UpdatedAtTime                chain.Uint      `json:"updatedAtTime"`
	ValidFromTime                chain.Uint      `json:"validFromTime"`
	SrcChainID                   chain.Uint      `json:"srcChainId"`
	IsLong                       bool            `json:"isLong"`
	ShouldUnwrapNativeToken      bool            `json:"shouldUnwrapNativeToken"`
	AutoCancel                   bool            `json:"autoCancel"`
	DataList                     []chain.Hash    `json:"dataList"`
	Status                       Status          `json:"status"`
	// Reason and ReasonBytes are those of the last OrderCancelled or OrderFrozen.
	Reason      string `json:"reason,omitempty"`
	ReasonBytes Bytes  `json:"reasonBytes,omitempty"`
	// SecondaryOrderType is OrderExecuted's: 1 for an auto-deleveraging.
	SecondaryOrderType chain.Uint `json:"secondaryOrderType"`
	// Changes counts the events that changed what an execution would do: creation, updates, freezing. It makes job ids
	// differ.
	Changes uint64 `json:"changes"`
	// Birth is the stamp of the log that made the order what it is now (creation or the last update); Stamp is that of
	// the last log.
	Birth Stamp `json:"birth"`
	Stamp Stamp `json:"stamp"`
}

// RowKey implements [Row].
func (o Order) RowKey() RowKey { return RowKey{Orders, o.Key} }

// PositionKey returns the key of the position the order acts on. An increase through a swap path ends up in another
// collateral; decreases and liquidations always name the position's own.
func (o Order) PositionKey() chain.Hash {
	return PositionKey(o.Account, o.Market, o.InitialCollateralToken, o.IsLong)
}
