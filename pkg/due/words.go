package due

import (
	"strings"

	"perpkeeper/pkg/perp"
)

// dollars writes USD of 30 decimals with two, cut off.
func dollars(v perp.Int) string {
	cents := v.Abs().Div(perp.Pow10(28)).String()
	cents = strings.Repeat("0", max(0, 3-len(cents))) + cents
	text := cents[:len(cents)-2] + "." + cents[len(cents)-2:]
	if v.Sign() < 0 {
		return "-" + text
	}
	return text
}

// percent writes a 30-decimal factor in percent, with two decimals, cut off. A ratio beyond a million is "unbounded":
// nothing is required.
func percent(factor perp.Uint) string {
	if perp.U64(1_000_000).Mul(perp.One).Less(factor) {
		return "unbounded"
	}
	return dollars(factor.Mul(perp.U64(100)).Int()) + " %"
}
