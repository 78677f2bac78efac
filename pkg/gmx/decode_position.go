package gmx

import "perpkeeper/pkg/perp"

var positionEvents = []eventKind{
	{"PositionIncrease", 1, ofAccount, decodePositionIncrease},
	{"PositionDecrease", 1, ofAccount, decodePositionDecrease},
	{"InsolventClose", 0, ofOrderKey, decodeInsolventClose},
	{"InitializePositionIncreasedAtTime", 0, ofKey, decodePositionIncreasedAt},
	{"InitializePositionDecreasedAtTime", 0, ofKey, decodePositionDecreasedAt},
}

func decodePositionIncrease(r *reader) []perp.Event {
	p := readPosition(r)
	p.IncreasedAtTime = r.uint("increasedAtTime")
	return []perp.Event{perp.PositionIncreased{
		Position:     p,
		OrderKey:     r.hash("orderKey"),
		SizeDeltaUsd: r.uint("sizeDeltaUsd"),
		Impact:       r.int("pendingPriceImpactAmount"),
	}}
}

func decodePositionDecrease(r *reader) []perp.Event {
	p := readPosition(r)
	p.DecreasedAtTime = r.uint("decreasedAtTime")
	return []perp.Event{perp.PositionDecreased{
		Position:     p,
		OrderKey:     r.hash("orderKey"),
		OrderType:    r.orderType(),
		SizeDeltaUsd: r.uint("sizeDeltaUsd"),
	}}
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

// decodeInsolventClose leaves the position to [joinInsolvent].
func decodeInsolventClose(r *reader) []perp.Event {
	return []perp.Event{perp.ClosedInsolvent{Debt: perp.BadDebt{
		OrderKey:                 r.hash("orderKey"),
		PositionCollateralAmount: r.uint("positionCollateralAmount"),
		BasePnlUsd:               r.int("basePnlUsd"),
		RemainingCostUsd:         r.uint("remainingCostUsd"),
		Step:                     r.text("step"),
		Stamp:                    r.stamp,
	}}}
}

func decodePositionIncreasedAt(r *reader) []perp.Event {
	at := r.uint("increasedAtTime")
	return []perp.Event{perp.PositionTimeInitialized{Key: r.hash("key"), IncreasedAtTime: &at, Stamp: r.stamp}}
}

func decodePositionDecreasedAt(r *reader) []perp.Event {
	at := r.uint("decreasedAtTime")
	return []perp.Event{perp.PositionTimeInitialized{Key: r.hash("key"), DecreasedAtTime: &at, Stamp: r.stamp}}
}
