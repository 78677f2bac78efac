package perp

import "perpkeeper/pkg/chain"

// PositionStatus is Active or Closed (TIER-6). LIQUIDATING is no status of the row: it is a view over the sender's
// intents.
type PositionStatus string

// The statuses of a position.
const (
	Active PositionStatus = "Active"
	Closed PositionStatus = "Closed"
)

// Position is a trader's position as the chain stores it, folded from PositionIncrease and PositionDecrease. The JSON
// names are the events' own. A closed position keeps its row, with zero size, because backups decide by it.
type Position struct {
	PositionKey      chain.Hash     `json:"positionKey"`
	Account          chain.Address  `json:"account"`
	Market           chain.Address  `json:"market"`
	CollateralToken  chain.Address  `json:"collateralToken"`
	IsLong           bool           `json:"isLong"`
	Status           PositionStatus `json:"status"`
	SizeInUsd        chain.Uint     `json:"sizeInUsd"`
	SizeInTokens     chain.Uint     `json:"sizeInTokens"`
	CollateralAmount chain.Uint     `json:"collateralAmount"`
	// in index tokens; in no event, see PositionIncreased
	PendingImpactAmount                    chain.Int  `json:"pendingImpactAmount"`
	BorrowingFactor                        chain.Uint `json:"borrowingFactor"`
	FundingFeeAmountPerSize                chain.Uint `json:"fundingFeeAmountPerSize"`
	LongTokenClaimableFundingAmountPerSize chain.Uint `json:"longTokenClaimableFundingAmountPerSize"`
	ShortTokenClaimableFundingPerSize      chain.Uint `json:"shortTokenClaimableFundingAmountPerSize"`
	IncreasedAtTime                        chain.Uint `json:"increasedAtTime"`
	DecreasedAtTime                        chain.Uint `json:"decreasedAtTime"`
	// Changes counts the increases and decreases of this key since its first one, over closings: it makes job ids of
	// one life differ.
	Changes uint64 `json:"changes"`
	Stamp   Stamp  `json:"stamp"`
}

// RowKey implements [Row].
func (p Position) RowKey() RowKey { return RowKey{Positions, p.PositionKey} }

// PositionKey is keccak256(abi.encode(account, market, collateralToken, isLong)), as PositionUtils computes it.
func PositionKey(account, market, collateral chain.Address, isLong bool) chain.Hash {
	var side chain.Hash
	if isLong {
		side[31] = 1
	}
	a, m, c := account.Hash(), market.Hash(), collateral.Hash()
	return chain.Keccak256(a[:], m[:], c[:], side[:])
}
