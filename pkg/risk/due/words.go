package due

import (
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// dollars writes USD of 30 decimals with two, cut off. It has words for any number: where the contract's own arithmetic
// ends, a text is still to be written.
func dollars(v chain.Uint) string {
	cents := v.Div(chain.Pow10(28)).String()
	cents = strings.Repeat("0", max(0, 3-len(cents))) + cents
	return cents[:len(cents)-2] + "." + cents[len(cents)-2:]
}

// signedDollars is dollars of what may be owed.
func signedDollars(v chain.Int) string {
	if v.Sign() < 0 {
		return "-" + dollars(v.Abs())
	}
	return dollars(v.Abs())
}

// percent writes a 30-decimal factor in percent, with two decimals, cut off. A ratio beyond a million is "unbounded":
// nothing is required.
func percent(factor chain.Uint) string {
	if chain.U64(1_000_000).Mul(perp.One).Less(factor) {
		return "unbounded"
	}
	return dollars(factor.Mul(chain.U64(100))) + " %"
}
