package perp

import "perpkeeper/pkg/chain"

// Market is one market: MarketCreated's own fields.
type Market struct {
	MarketToken chain.Address `json:"marketToken"`
	IndexToken  chain.Address `json:"indexToken"`
	LongToken   chain.Address `json:"longToken"`
	ShortToken  chain.Address `json:"shortToken"`
	Salt        chain.Hash    `json:"salt"`
	MarketType  chain.Hash    `json:"marketType"`
	Stamp       Stamp         `json:"stamp"`
}

// RowKey implements [Row].
func (m Market) RowKey() RowKey { return RowKey{Markets, m.MarketToken.Hash()} }

// Tokens returns the tokens whose prices any action in the market needs, each once.
func (m Market) Tokens() []chain.Address {
	tokens := []chain.Address{m.IndexToken, m.LongToken}
	if m.LongToken == m.IndexToken {
		tokens = tokens[:1]
	}
	if m.ShortToken != m.LongToken && m.ShortToken != m.IndexToken {
		tokens = append(tokens, m.ShortToken)
	}
	return tokens
}

// Measure names one number the exchange keeps per market.
type Measure string

// The measures, each folded from the event whose name it follows.
const (
	PoolAmount                   Measure = "poolAmount"                   // token
	SwapImpactPoolAmount         Measure = "swapImpactPoolAmount"         // token
	PositionImpactPoolAmount     Measure = "positionImpactPoolAmount"     // index tokens
	LentPositionImpactPoolAmount Measure = "lentPositionImpactPoolAmount" // index tokens
	TotalPendingImpactAmount     Measure = "totalPendingImpactAmount"     // signed, index tokens
	OpenInterest                 Measure = "openInterest"                 // USD; collateral, side
	OpenInterestInTokens         Measure = "openInterestInTokens"         // index tokens; collateral, side
	CollateralSum                Measure = "collateralSum"                // collateral tokens; collateral, side
	// CumulativeBorrowingFactor: factor; side; its stamp is the last accrual.
	CumulativeBorrowingFactor Measure = "cumulativeBorrowingFactor"
	BorrowingFactorPerSecond  Measure = "borrowingFactorPerSecond" // factor
	// FundingFactorPerSecond: magnitude; its stamp is the last accrual.
	FundingFactorPerSecond Measure = "fundingFactorPerSecond"
	// SavedFundingFactorPerSecond: signed factor, positive when longs pay; in no event, see Apply.
	SavedFundingFactorPerSecond   Measure = "savedFundingFactorPerSecond"
	FundingFeeAmountPerSize       Measure = "fundingFeeAmountPerSize"       // collateral, side
	ClaimableFundingAmountPerSize Measure = "claimableFundingAmountPerSize" // collateral, side
	// VirtualInventoryForSwaps: Scope = virtual market id; side = is long token.
	VirtualInventoryForSwaps       Measure = "virtualInventoryForSwaps"
	VirtualInventoryForPositions   Measure = "virtualInventoryForPositions"   // signed USD; Scope = virtual token id
	PositionImpactDistributionRate Measure = "positionImpactPoolDistribution" // index tokens per second
	MinPositionImpactPoolAmount    Measure = "minPositionImpactPoolAmount"    // index tokens
	// AdlEnabled: 0 or 1; side; its stamp is the latest ADL update.
	AdlEnabled Measure = "adlEnabled"

	// GlvMarket is 1 while a market (Token) belongs to a GLV (Scope, padded): executions for the GLV need the prices of
	// all its markets.
	GlvMarket Measure = "glvMarket"

	// WordsAudited is the number of the final block at which every word that rules read for a market was last compared
	// with the exchange's DataStore. A market without it has not been audited yet, and nothing is sent for it.
	WordsAudited Measure = "wordsAudited"

	// VirtualInventoryForPositionsInTokens is signed, in index tokens; Scope = virtual token id. See
	// [VirtualPositionsMoved].
	VirtualInventoryForPositionsInTokens Measure = "virtualInventoryForPositionsInTokens"
)

// MarketValue is the present value of one measure. Absent means zero, as in the contract's store.
type MarketValue struct {
	Measure Measure       `json:"measure"`
	Scope   chain.Hash    `json:"scope"`  // the market, padded; for virtual inventories their id
	Token   chain.Address `json:"token"`  // zero where the measure has none
	IsLong  bool          `json:"isLong"` // false where the measure has no side
	Value   chain.Int     `json:"value"`
	Stamp   Stamp         `json:"stamp"` // of funding and borrowing: when the chain last accrued
}

// RowKey implements [Row].
func (v MarketValue) RowKey() RowKey { return MarketValueKey(v.Measure, v.Scope, v.Token, v.IsLong) }

// MarketValueKey returns the key of a measure's row.
func MarketValueKey(m Measure, scope chain.Hash, token chain.Address, isLong bool) RowKey {
	side := []byte{0}
	if isLong {
		side[0] = 1
	}
	return RowKey{MarketValues, chain.Keccak256([]byte(m), scope[:], token[:], side)}
}
