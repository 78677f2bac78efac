package perp

import "perpkeeper/pkg/chain"

// The base keys of the words a verdict depends on (Keys.sol). Each takes the arguments its name's function takes there.
var (
	minCollateralUsdKey      = BaseKey("MIN_COLLATERAL_USD")
	minCollateralFactorKey   = BaseKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION")
	maxPnlFactorKey          = BaseKey("MAX_PNL_FACTOR")
	maxPnlFactorForTraders   = BaseKey("MAX_PNL_FACTOR_FOR_TRADERS")
	positionFeeFactorKey     = BaseKey("POSITION_FEE_FACTOR")
	proTraderTierKey         = BaseKey("PRO_TRADER_TIER")
	proDiscountFactorKey     = BaseKey("PRO_DISCOUNT_FACTOR")
	skipSmallerSideKey       = BaseKey("SKIP_BORROWING_FEE_FOR_SMALLER_SIDE")
	balanceInTokensKey       = BaseKey("USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE")
	virtualTokenIDKey        = BaseKey("VIRTUAL_TOKEN_ID")
	impactFactorKey          = BaseKey("POSITION_IMPACT_FACTOR")
	impactExponentKey        = BaseKey("POSITION_IMPACT_EXPONENT_FACTOR")
	maxImpactFactorKey       = BaseKey("MAX_POSITION_IMPACT_FACTOR")
	maxImpactOnLiquidation   = BaseKey("MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS")
	borrowingFactorKey       = BaseKey("BORROWING_FACTOR")
	borrowingExponentKey     = BaseKey("BORROWING_EXPONENT_FACTOR")
	optimalUsageFactorKey    = BaseKey("OPTIMAL_USAGE_FACTOR")
	baseBorrowingFactorKey   = BaseKey("BASE_BORROWING_FACTOR")
	aboveOptimalFactorKey    = BaseKey("ABOVE_OPTIMAL_USAGE_BORROWING_FACTOR")
	interestReserveFactorKey = BaseKey("OPEN_INTEREST_RESERVE_FACTOR")
	fundingFactorKey         = BaseKey("FUNDING_FACTOR")
	fundingExponentKey       = BaseKey("FUNDING_EXPONENT_FACTOR")
	fundingIncreaseKey       = BaseKey("FUNDING_INCREASE_FACTOR_PER_SECOND")
	fundingDecreaseKey       = BaseKey("FUNDING_DECREASE_FACTOR_PER_SECOND")
	minFundingKey            = BaseKey("MIN_FUNDING_FACTOR_PER_SECOND")
	maxFundingKey            = BaseKey("MAX_FUNDING_FACTOR_PER_SECOND")
	minFundingIncreaseKey    = BaseKey("MIN_FUNDING_INCREASE_RATE_PER_SECOND")
	stableFundingKey         = BaseKey("THRESHOLD_FOR_STABLE_FUNDING")
	decreaseFundingKey       = BaseKey("THRESHOLD_FOR_DECREASE_FUNDING")
	savedFundingKey          = BaseKey("SAVED_FUNDING_FACTOR_PER_SECOND")
)

// ledger reads one market out of the rows as the contracts read their DataStore: what is absent is zero.
type ledger struct {
	rows    Rows
	market  Market
	version Version // of whose rules funding is; nothing else differs
}

// word is a parameter of the whole exchange.
func (l ledger) word(base chain.Hash, args ...chain.Hash) chain.Uint {
	parameter, _ := l.rows.Get(RowKey{Parameters, argued(base, args...)}).(Parameter)
	return parameter.Uint()
}

// term is a parameter of the market.
func (l ledger) term(base chain.Hash) chain.Uint { return l.word(base, l.market.MarketToken.Hash()) }

// sided is a parameter of the market with a boolean: a side of the market, or whether a trade improves the balance.
func (l ledger) sided(base chain.Hash, is bool) chain.Uint {
	return l.word(base, l.market.MarketToken.Hash(), BoolWord(is))
}

// flag is a switch of the whole exchange.
func (l ledger) flag(base chain.Hash) bool { return !l.word(base).IsZero() }

func (l ledger) measure(m Measure, token chain.Address, isLong bool) MarketValue {
	value, _ := l.rows.Get(MarketValueKey(m, l.market.MarketToken.Hash(), token, isLong)).(MarketValue)
	return value
}

// secondsSince is how long ago a measure was last accrued, zero for one that never was
// (MarketUtils.getSecondsSinceFundingUpdated). A moment before the accrual counts as the accrual itself: no chain goes
// back, but the caller's clock may lag behind the state.
func secondsSince(v MarketValue, now uint64) chain.Uint {
	if at := v.Stamp.Seconds(); at != 0 && at < now {
		return chain.U64(now - at)
	}
	return chain.Uint{}
}

// argued is the full key of a base key with arguments of one word each.
func argued(base chain.Hash, args ...chain.Hash) chain.Hash {
	data := make([]byte, 0, 4*len(base))
	for _, a := range args {
		data = append(data, a[:]...)
	}
	return FullKey(base, data)
}

// ApplyFactor is value·factor with a 30-decimal factor, rounded down (Precision.applyFactor).
func ApplyFactor(value, factor chain.Uint) chain.Uint { return value.MulDiv(factor, One) }

// toFactor is value/divisor as a 30-decimal factor, rounded down (Precision.toFactor).
func toFactor(value, divisor chain.Uint) chain.Uint {
	if value.IsZero() {
		return chain.Uint{}
	}
	return value.MulDiv(One, divisor)
}

func distance(a, b chain.Uint) chain.Uint {
	if a.Less(b) {
		return b.Sub(a)
	}
	return a.Sub(b)
}

// signedBy is a number with the given sign (Calc.toSigned).
func signedBy(magnitude chain.Uint, positive bool) chain.Int {
	if positive {
		return magnitude.Int()
	}
	return magnitude.Int().Neg()
}
