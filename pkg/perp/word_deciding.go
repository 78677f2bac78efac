package perp

import "slices"

// deciding are the names, or the prefixes where there are any, of the parameters that the verdict on an open position
// reads: those whose change can make one liquidatable, or healthy again.
var deciding = []string{
	"MIN_COLLATERAL_USD", "SKIP_BORROWING_FEE_FOR_SMALLER_SIDE", "USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE",
	"VIRTUAL_TOKEN_ID",
	"MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", "MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS",
	"FUNDING_FACTOR", "FUNDING_EXPONENT_FACTOR", "FUNDING_INCREASE_FACTOR_PER_SECOND",
	"FUNDING_DECREASE_FACTOR_PER_SECOND", "MIN_FUNDING_FACTOR_PER_SECOND", "MAX_FUNDING_FACTOR_PER_SECOND",
	"MIN_FUNDING_INCREASE_RATE_PER_SECOND", "THRESHOLD_FOR_STABLE_FUNDING", "THRESHOLD_FOR_DECREASE_FUNDING",
	"POSITION_FEE_FACTOR", "POSITION_IMPACT_FACTOR", "POSITION_IMPACT_EXPONENT_FACTOR", "MAX_POSITION_IMPACT_FACTOR",
	"BORROWING_FACTOR", "BORROWING_EXPONENT_FACTOR", "OPTIMAL_USAGE_FACTOR", "BASE_BORROWING_FACTOR",
	"ABOVE_OPTIMAL_USAGE_BORROWING_FACTOR", "OPEN_INTEREST_RESERVE_FACTOR",
	"MAX_PNL_FACTOR_FOR_TRADERS",
}

// DecidingWords lists those of [Words] that the verdict on an open position of these markets reads: about 40 a market.
func DecidingWords(markets []Market) []Word {
	var all []Word
	for _, n := range catalogue {
		name := n.Name
		if n.Prefix != "" {
			name = n.Prefix
		}
		if n.Unaudited == "" && slices.Contains(deciding, name) {
			all = append(all, n.Words(markets)...)
		}
	}
	return all
}
