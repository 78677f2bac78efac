package gmx

import (
	"perpkeeper/pkg/perp"
)

var positionEvents = []eventKind{
	{"PositionIncrease", 1, ofAccount, decodePositionIncrease},
	{"PositionDecrease", 1, ofAccount, decodePositionDecrease},
	{"InsolventClose", 0, ofOrderKey, decodeInsolventClose},
	// it belongs to the account, although its topic is the market
	{"PositionFeesCollected", 1, ofOrderKey, decodePositionFees},
	{"InitializePositionIncreasedAtTime", 0, ofKey, decodePositionIncreasedAt},
	{"InitializePositionDecreasedAtTime", 0, ofKey, decodePositionDecreasedAt},
}

func decodePositionIncrease(r *reader) {
	p := readPosition(r)
	p.IncreasedAtTime = r.uint("increasedAtTime")
	r.emit(perp.PositionIncreased{
		Position:     p,
		OrderKey:     r.hash("orderKey"),
		SizeDeltaUsd: r.uint("sizeDeltaUsd"),
		Impact:       r.int("pendingPriceImpactAmount"),
	})
}

func decodePositionDecrease(r *reader) {
	p := readPosition(r)
	p.DecreasedAtTime = r.uint("decreasedAtTime")
	decreased := perp.PositionDecreased{
		Position:     p,
		SizeDeltaUsd: r.uint("sizeDeltaUsd"),
		OrderType:    r.orderType(),
		OrderKey:     r.hash("orderKey"),
	}
	r.emit(decreased)
	emitSettlement(r, decreased)
}

// readPosition reads what increase and decrease have in common. The position's key must be the one its parts hash to.
func readPosition(r *reader) perp.Position {
	p := perp.Position{
		PositionKey:                            r.hash("positionKey"),
		Account:                                r.address("account"),
		Market:                                 r.address("market"),
		CollateralToken:                        r.address("collateralToken"),
		IsLong:                                 r.bool("isLong"),
		SizeInUsd:                              r.uint("sizeInUsd"),
		SizeInTokens:                           r.uint("sizeInTokens"),
		CollateralAmount:                       r.uint("collateralAmount"),
		BorrowingFactor:                        r.uint("borrowingFactor"),
		FundingFeeAmountPerSize:                r.uint("fundingFeeAmountPerSize"),
		LongTokenClaimableFundingAmountPerSize: r.uint("longTokenClaimableFundingAmountPerSize"),
		ShortTokenClaimableFundingPerSize:      r.uint("shortTokenClaimableFundingAmountPerSize"),
		Stamp:                                  r.stamp,
	}
	if want := perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong); p.PositionKey != want {
		r.failf("item %q is %s, but its parts hash to %s", "positionKey", p.PositionKey, want)
	}
	return p
}

// decodeInsolventClose leaves the position to [joins.join].
func decodeInsolventClose(r *reader) {
	r.insolvent = append(r.insolvent, len(r.events))
	r.emit(perp.ClosedInsolvent{Debt: perp.BadDebt{
		OrderKey:                 r.hash("orderKey"),
		PositionCollateralAmount: r.uint("positionCollateralAmount"),
		BasePnlUsd:               r.int("basePnlUsd"),
		RemainingCostUsd:         r.uint("remainingCostUsd"),
		Step:                     r.text("step"),
		Stamp:                    r.stamp,
	}})
}

func decodePositionIncreasedAt(r *reader) {
	at := r.uint("increasedAtTime")
	r.emit(perp.PositionTimeInitialized{Key: r.hash("key"), IncreasedAtTime: &at, Stamp: r.stamp})
}

func decodePositionDecreasedAt(r *reader) {
	at := r.uint("decreasedAtTime")
	r.emit(perp.PositionTimeInitialized{Key: r.hash("key"), DecreasedAtTime: &at, Stamp: r.stamp})
}

var feeEvents = []eventKind{
	{"KeeperExecutionFee", 1, ofAccount, decodeKeeperFee},
}

// decodeKeeperFee belongs to the keeper's own account: the signer that executed, not the one whose order it was.
func decodeKeeperFee(r *reader) {
	r.checkTopic(2, "keeper")
	r.emit(perp.KeeperPaid{Fee: perp.KeeperFee{Keeper: r.address("keeper"), Amount: r.uint("executionFeeAmount"),
		Stamp: r.stamp}})
}
