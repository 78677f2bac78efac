package perp

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
)

// Settlement is the result of a decrease of a position, liquidations and deleveragings among them (LIQ-11):
// PositionDecrease joined with the PositionFeesCollected of the same order. Who executed it says the [Transaction] of
// the stamp's hash; what the exchange lost, the [BadDebt] of the same order. Amounts are in the collateral token's
// smallest unit.
type Settlement struct {
	OrderKey              chain.Hash    `json:"orderKey"`
	PositionKey           chain.Hash    `json:"positionKey"`
	Account               chain.Address `json:"account"`
	Market                chain.Address `json:"market"`
	CollateralToken       chain.Address `json:"collateralToken"`
	IsLong                bool          `json:"isLong"`
	OrderType             OrderType     `json:"orderType"`
	SizeDeltaUsd          chain.Uint    `json:"sizeDeltaUsd"`
	SizeInUsd             chain.Uint    `json:"sizeInUsd"`        // what is left; zero closes
	CollateralAmount      chain.Uint    `json:"collateralAmount"` // what is left
	CollateralDeltaAmount chain.Uint    `json:"collateralDeltaAmount"`
	ExecutionPrice        chain.Uint    `json:"executionPrice"`
	BasePnlUsd            chain.Int     `json:"basePnlUsd"`
	PriceImpactUsd        chain.Int     `json:"priceImpactUsd"`
	FundingFeeAmount      chain.Uint    `json:"fundingFeeAmount"`
	BorrowingFeeAmount    chain.Uint    `json:"borrowingFeeAmount"`
	PositionFeeAmount     chain.Uint    `json:"positionFeeAmount"`
	LiquidationFeeAmount  chain.Uint    `json:"liquidationFeeAmount"`
	TotalCostAmount       chain.Uint    `json:"totalCostAmount"`
	Stamp                 Stamp         `json:"stamp"`
}

// RowKey implements [Row].
func (s Settlement) RowKey() RowKey { return RowKey{Settlements, s.OrderKey} }

// PositionSettled is the joined pair of events that a [Settlement] is made of. It follows the PositionDecreased of the
// same log.
type PositionSettled struct{ Settlement Settlement }

// Touches implements [Event].
func (e PositionSettled) Touches() []RowKey { return []RowKey{e.Settlement.RowKey()} }

// KeeperFee is KeeperExecutionFee: what the exchange paid a keeper's signer for one execution. A transaction may pay
// several.
type KeeperFee struct {
	Keeper chain.Address `json:"keeper"`
	Amount chain.Uint    `json:"amount"` // wei
	Stamp  Stamp         `json:"stamp"`
}

// RowKey implements [Row]. The identity is the log's place in its transaction.
func (f KeeperFee) RowKey() RowKey {
	return RowKey{KeeperFees, chain.Keccak256(f.Stamp.TxHash[:], binary.BigEndian.AppendUint32(nil, f.Stamp.Log))}
}

// KeeperPaid is KeeperExecutionFee.
type KeeperPaid struct{ Fee KeeperFee }

// Touches implements [Event].
func (e KeeperPaid) Touches() []RowKey { return []RowKey{e.Fee.RowKey()} }
