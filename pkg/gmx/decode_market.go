package gmx

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// marketEvents are those about one market, and the virtual inventories that several markets share: those belong to no
// market.
var marketEvents = []eventKind{
	{"MarketCreated", 1, ofMarket, decodeMarketCreated},
	{"PoolAmountUpdated", 1, ofMarket, measured{perp.PoolAmount, "nextValue", "token", ""}.decode},
	{"SwapImpactPoolAmountUpdated", 1, ofMarket, measured{perp.SwapImpactPoolAmount, "nextValue", "token", ""}.decode},
	{"PositionImpactPoolAmountUpdated", 1, ofMarket, measured{perp.PositionImpactPoolAmount, "nextValue", "",
		""}.decode},
	{"PositionImpactPoolDistributed", 1, ofMarket,
		measured{perp.PositionImpactPoolAmount, "nextPositionImpactPoolAmount", "", ""}.decode},
	{"LentPositionImpactPoolAmountUpdated", 1, ofMarket, measured{perp.LentPositionImpactPoolAmount, "nextValue", "",
		""}.decode},
	{"TotalPendingImpactAmountUpdated", 1, ofMarket, decodeTotalPendingImpact},
	{"OpenInterestUpdated", 1, ofMarket, measured{perp.OpenInterest, "nextValue", "collateralToken", "isLong"}.decode},
	{"OpenInterestInTokensUpdated", 1, ofMarket, measured{perp.OpenInterestInTokens, "nextValue", "collateralToken",
		"isLong"}.decode},
	{"CollateralSumUpdated", 1, ofMarket, measured{perp.CollateralSum, "nextValue", "collateralToken",
		"isLong"}.decode},
	{"Borrowing", 1, ofMarket, measured{perp.BorrowingFactorPerSecond, "borrowingFactorPerSecond", "", ""}.decode},
	{"CumulativeBorrowingFactorUpdated", 1, ofMarket, measured{perp.CumulativeBorrowingFactor, "nextValue", "",
		"isLong"}.decode},
	{"Funding", 1, ofMarket, decodeFunding},
	{"FundingFeeAmountPerSizeUpdated", 1, ofMarket, measured{perp.FundingFeeAmountPerSize, "value", "collateralToken",
		"isLong"}.decode},
	{"ClaimableFundingAmountPerSizeUpdated", 1, ofMarket,
		measured{perp.ClaimableFundingAmountPerSize, "value", "collateralToken", "isLong"}.decode},
	{"AdlStateUpdated", 1, ofMarket, decodeAdlState},
	{"SetPositionImpactPoolDistributionRate", 1, ofMarket, decodeImpactDistribution},
	{"GlvMarketAdded", 2, global, glvMarket(1)},
	{"GlvMarketRemoved", 2, global, glvMarket(0)},
	{"VirtualSwapInventoryUpdated", 2, global, decodeVirtualSwaps},
	{"VirtualPositionInventoryUpdated", 2, global, decodeVirtualPositions},
}

func decodeMarketCreated(r *reader) {
	r.checkTopic(2, "marketToken")
	m := perp.Market{
		MarketToken: r.address("marketToken"),
		IndexToken:  r.address("indexToken"),
		LongToken:   r.address("longToken"),
		ShortToken:  r.address("shortToken"),
		Salt:        r.hash("salt"),
		MarketType:  r.hash("marketType"),
		Stamp:       r.stamp,
	}
	r.emit(perp.MarketListed{Market: m})
}

// measured is an event that sets one unsigned measure of a market. Token and side name the items that tell them, ""
// where there is none.
type measured struct {
	measure            perp.Measure
	value, token, side string
}

func (m measured) decode(r *reader) { r.value(m.read(r)) }

func (m measured) read(r *reader) perp.MarketValue {
	v := perp.MarketValue{Measure: m.measure, Scope: r.address("market").Hash(), Value: r.amount(m.value),
		Stamp: r.stamp}
	if m.token != "" {
		v.Token = r.address(m.token)
	}
	if m.side != "" {
		v.IsLong = r.bool(m.side)
	}
	return v
}

// decodeFunding keeps who spoke: what follows from the event is by the rules of that handler.
func decodeFunding(r *reader) {
	v := measured{perp.FundingFactorPerSecond, "fundingFactorPerSecond", "", ""}.read(r)
	r.emit(perp.MarketValued{Values: []perp.MarketValue{v}, Handler: sender(r.log)})
}

func decodeTotalPendingImpact(r *reader) {
	r.value(perp.MarketValue{
		Measure: perp.TotalPendingImpactAmount, Scope: r.address("market").Hash(), Value: r.int("nextValue"),
		Stamp: r.stamp,
	})
}

// decodeAdlState takes the market from the topic: no item names it.
func decodeAdlState(r *reader) {
	r.value(perp.MarketValue{
		Measure: perp.AdlEnabled, Scope: r.log.Topics[2], IsLong: r.bool("isLong"), Stamp: r.stamp,
		Value: chain.IntFromWord(perp.BoolWord(r.bool("shouldEnableAdl"))),
	})
}

func decodeImpactDistribution(r *reader) {
	market := r.address("market").Hash()
	r.value(
		perp.MarketValue{
			Measure: perp.PositionImpactDistributionRate, Scope: market,
			Value: r.amount("positionImpactPoolDistributionRate"), Stamp: r.stamp,
		},
		perp.MarketValue{
			Measure: perp.MinPositionImpactPoolAmount, Scope: market, Value: r.amount("minPositionImpactPoolAmount"),
			Stamp: r.stamp,
		},
	)
}

func decodeVirtualSwaps(r *reader) {
	r.value(perp.MarketValue{
		Measure: perp.VirtualInventoryForSwaps, Scope: r.hash("virtualMarketId"), IsLong: r.bool("isLongToken"),
		Value: r.amount("nextValue"),
		Stamp: r.stamp,
	})
}

func decodeVirtualPositions(r *reader) {
	r.emit(perp.VirtualPositionsMoved{TokenID: r.hash("virtualTokenId"), Value: r.int("nextValue"),
		Delta: r.int("delta"), Stamp: r.stamp})
}

func (r *reader) value(values ...perp.MarketValue) { r.emit(perp.MarketValued{Values: values}) }

var (
	swapInventory            = perp.BaseKey("VIRTUAL_INVENTORY_FOR_SWAPS")
	positionInventory        = perp.BaseKey("VIRTUAL_INVENTORY_FOR_POSITIONS")
	positionInventoryInToken = perp.BaseKey("VIRTUAL_INVENTORY_FOR_POSITIONS_IN_TOKENS")
)

// setInventory adds what a SetUint or SetInt of a virtual inventory means beside the parameter itself; nothing for
// other keys.
func setInventory(r *reader, base chain.Hash, args []byte, value chain.Int) {
	v := perp.MarketValue{Value: value, Stamp: r.stamp}
	switch {
	case base == swapInventory && len(args) == 64:
		v.Measure, v.IsLong = perp.VirtualInventoryForSwaps, args[63] == 1
	case base == positionInventory && len(args) == 32:
		v.Measure = perp.VirtualInventoryForPositions
	case base == positionInventoryInToken && len(args) == 32:
		v.Measure = perp.VirtualInventoryForPositionsInTokens
	default:
		return
	}
	if v.Scope = chain.Hash(args[:32]); !r.copies {
		r.value(v)
	}
}

// glvMarket reports whether a market belongs to a GLV from now on.
func glvMarket(belongs int64) func(*reader) {
	return func(r *reader) {
		r.checkTopic(2, "glv")
		r.checkTopic(3, "market")
		r.emit(perp.MarketValued{Values: []perp.MarketValue{{
			Measure: perp.GlvMarket, Scope: r.address("glv").Hash(), Token: r.address("market"),
			Value: chain.I64(belongs), Stamp: r.stamp,
		}}})
	}
}
