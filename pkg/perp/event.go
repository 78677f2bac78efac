package perp

import "perpkeeper/pkg/chain"

// Event is one event of the exchange that changes our state, decoded from a log by pkg/gmx. The concrete types are
// those below; there are no others.
type Event interface {
	// Touches lists the rows that applying the event may read or write, so that a store can fetch them first.
	Touches() []RowKey
	// apply folds the event into a state, as [Apply] says.
	apply(s State) error
}

// PositionIncreased carries the absolute state of a position after an increase. The chain's total pending impact is in
// no event: Impact is what this increase adds to it.
type PositionIncreased struct {
	Position     Position // PendingImpactAmount and DecreasedAtTime are not the event's: Apply fills them
	OrderKey     chain.Hash
	SizeDeltaUsd chain.Uint
	Impact       chain.Int // pendingPriceImpactAmount, index tokens
}

// PositionDecreased carries the absolute state after a decrease; size zero closes. The pending impact shrinks in
// proportion, its magnitude rounded up when negative
// (DecreasePositionCollateralUtils._getProportionalPendingImpactValues).
type PositionDecreased struct {
	Position     Position // PendingImpactAmount and IncreasedAtTime are not the event's: Apply fills them
	OrderKey     chain.Hash
	OrderType    OrderType // why: a liquidation, a deleveraging (as market decrease) or the owner's order
	SizeDeltaUsd chain.Uint
}

// OrderCreated announces an order. Liquidations and deleveragings announce and execute theirs in one transaction.
type OrderCreated struct{ Order Order }

// OrderChanged is OrderUpdated: it replaces the named terms and unfreezes.
type OrderChanged struct {
	Key             chain.Hash
	SizeDeltaUsd    chain.Uint
	AcceptablePrice chain.Uint
	TriggerPrice    chain.Uint
	MinOutputAmount chain.Uint
	UpdatedAtTime   chain.Uint
	ValidFromTime   chain.Uint
	AutoCancel      bool
	DataList        []chain.Hash
	Stamp           Stamp
}

// OrderResized is OrderSizeDeltaAutoUpdated or OrderCollateralDeltaAmountAutoUpdated: one of the two is set.
type OrderResized struct {
	Key                 chain.Hash
	NextSizeDeltaUsd    *chain.Uint
	NextCollateralDelta *chain.Uint
	Stamp               Stamp
}

// OrderEnded is OrderExecuted, OrderCancelled or OrderFrozen (which is no end: an update revives it).
type OrderEnded struct {
	Key                chain.Hash
	Status             Status
	SecondaryOrderType chain.Uint
	Reason             string
	ReasonBytes        Bytes
	Stamp              Stamp
}

// OrderTimeInitialized is InitializeOrderUpdatedAtTime, a migration of old orders.
type OrderTimeInitialized struct {
	Key           chain.Hash
	UpdatedAtTime chain.Uint
	Stamp         Stamp
}

// PositionTimeInitialized is InitializePositionIncreasedAtTime or …DecreasedAtTime: one of the two is set.
type PositionTimeInitialized struct {
	Key             chain.Hash
	IncreasedAtTime *chain.Uint
	DecreasedAtTime *chain.Uint
	Stamp           Stamp
}

// RequestCreated announces a deposit, withdrawal or shift.
type RequestCreated struct{ Request Request }

// RequestEnded is …Executed or …Cancelled of a request.
type RequestEnded struct {
	Kind        RequestKind
	Key         chain.Hash
	Status      Status
	Reason      string
	ReasonBytes Bytes
	Stamp       Stamp
}

// MarketListed is MarketCreated.
type MarketListed struct{ Market Market }

// MarketValued sets one or more measures of a market.
type MarketValued struct {
	Values []MarketValue
	// Handler is the contract that spoke, of a Funding event: its version's rule holds. Zero of what is no log.
	Handler chain.Address `json:",omitzero"`
}

// VirtualPositionsMoved is VirtualPositionInventoryUpdated. The event does not say whether it counts USD or index
// tokens: the flag USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE does, as it stands at that moment. Apply asks the
// parameters, and which of the two the event continues, because managers may set the flag without an event.
type VirtualPositionsMoved struct {
	TokenID      chain.Hash // the virtual token id
	Value, Delta chain.Int
	Stamp        Stamp
}

// ParameterSet is SetUint, SetInt, SetBool, SetAddress or SetBytes32 of the exchange's Config, or a PARAM record.
type ParameterSet struct{ Parameter Parameter }

// ParameterAudited is a word as an audit has read it by call at the block of its stamp, because it is not known
// to be what events said. Where the fold has the same value it changes nothing.
type ParameterAudited struct {
	Parameter Parameter
	Name      string // the word's name and arguments, for people
}

// OracleSourceSet is SetOracleProviderForToken or InitOracleProviderForToken.
type OracleSourceSet struct{ Source OracleSource }

// ClosedInsolvent is InsolventClose, already joined with its position. It records the debt only: the decrease to zero
// that follows it in the same transaction closes the position.
type ClosedInsolvent struct{ Debt BadDebt }

// TransactionSeen is a TX record.
type TransactionSeen struct{ Transaction Transaction }

// Touches implements [Event].
func (e PositionIncreased) Touches() []RowKey { return []RowKey{e.Position.RowKey()} }

// Touches implements [Event].
func (e PositionDecreased) Touches() []RowKey { return []RowKey{e.Position.RowKey()} }

// Touches implements [Event].
func (e OrderCreated) Touches() []RowKey { return []RowKey{e.Order.RowKey()} }

// Touches implements [Event].
func (e OrderChanged) Touches() []RowKey { return []RowKey{{Orders, e.Key}} }

// Touches implements [Event].
func (e OrderResized) Touches() []RowKey { return []RowKey{{Orders, e.Key}} }

// Touches implements [Event].
func (e OrderEnded) Touches() []RowKey { return []RowKey{{Orders, e.Key}} }

// Touches implements [Event].
func (e OrderTimeInitialized) Touches() []RowKey { return []RowKey{{Orders, e.Key}} }

// Touches implements [Event].
func (e PositionTimeInitialized) Touches() []RowKey { return []RowKey{{Positions, e.Key}} }

// Touches implements [Event].
func (e RequestCreated) Touches() []RowKey { return []RowKey{e.Request.RowKey()} }

// Touches implements [Event].
func (e RequestEnded) Touches() []RowKey { return []RowKey{{Requests, e.Key}} }

// Touches implements [Event].
func (e MarketListed) Touches() []RowKey { return []RowKey{e.Market.RowKey()} }

// Touches implements [Event].
func (e MarketValued) Touches() []RowKey {
	keys := make([]RowKey, 0, len(e.Values))
	for _, v := range e.Values {
		keys = append(keys, v.RowKey())
		if v.Measure == FundingFactorPerSecond {
			keys = append(keys, MarketValueKey(SavedFundingFactorPerSecond, v.Scope, noToken, false))
			keys = append(keys, HandlerVersion(e.Handler, 0).RowKey())
			keys = append(keys, fundingWords(v.Scope)...)
		}
	}
	return keys
}

// Touches implements [Event].
func (e VirtualPositionsMoved) Touches() []RowKey {
	return []RowKey{
		{Parameters, balanceInTokensKey},
		MarketValueKey(VirtualInventoryForPositions, e.TokenID, chain.Address{}, false),
		MarketValueKey(VirtualInventoryForPositionsInTokens, e.TokenID, chain.Address{}, false),
	}
}

// Touches implements [Event].
func (e ParameterSet) Touches() []RowKey { return []RowKey{e.Parameter.RowKey()} }

// Touches implements [Event].
func (e ParameterAudited) Touches() []RowKey { return []RowKey{e.Parameter.RowKey()} }

// Touches implements [Event].
func (e OracleSourceSet) Touches() []RowKey { return []RowKey{e.Source.RowKey()} }

// Touches implements [Event].
func (e ClosedInsolvent) Touches() []RowKey { return []RowKey{e.Debt.RowKey()} }

// Touches implements [Event].
func (e TransactionSeen) Touches() []RowKey { return []RowKey{e.Transaction.RowKey()} }
