// Package text writes what operators read of a keeper, on a terminal and in a browser alike: amounts, times, first
// lines.
package text

import (
	"fmt"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Coins writes wei as the chain's coin of 18 decimals, exactly.
func Coins(wei chain.Uint) string { return wei.Decimal(18) }

// BNB is wei as the chain's coin, with its unit: cut to six decimals, and less than that is said to be less.
func BNB(wei chain.Uint) string {
	whole, fraction, _ := strings.Cut(Coins(wei), ".")
	switch fraction = strings.TrimRight(fraction[:min(6, len(fraction))], "0"); {
	case fraction != "":
		return Grouped(whole+"."+fraction) + " BNB"
	case whole == "0" && !wei.IsZero():
		return "< 0.000001 BNB"
	}
	return Grouped(whole) + " BNB"
}

// SignedBNB is BNB with the sign of what was gained or lost.
func SignedBNB(wei chain.Int) string {
	return map[int]string{-1: "−", 0: "", 1: "+"}[wei.Sign()] + BNB(wei.Abs())
}

// Gwei is a price of gas, without the last three digits: a liquidation's wei more is no news.
func Gwei(wei uint64) string { return Grouped(chain.U64(wei/1000).Decimal(6)) + " Gwei" }

// Grouped is a number of decimal digits with its thousands apart.
func Grouped(digits string) string {
	whole, fraction, _ := strings.Cut(digits, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

// Short is a hash or address with its middle left out; anything else as it is.
func Short(v any) string {
	s := fmt.Sprint(v)
	if !strings.HasPrefix(s, "0x") || len(s) < 16 {
		return s
	}
	return s[:8] + "…" + s[len(s)-4:]
}

// USD is USD of 30 decimals, cut to cents.
func USD(v chain.Uint) string {
	cents := v.Div(chain.Pow10(28))
	digits := cents.String()
	digits = strings.Repeat("0", max(3-len(digits), 0)) + digits
	return "$" + Grouped(digits[:len(digits)-2]) + "." + digits[len(digits)-2:]
}

// priceDigits are how many digits of a price are shown that are not leading zeros.
const priceDigits = 6

// Price is what a token costs, in USD: of 30 decimals a smallest unit, of which a token has 10^decimals. It is cut to
// six digits, but never before the point.
func Price(v chain.Uint, decimals int) string {
	digits := v.Decimal(max(30-decimals, 0)) + strings.Repeat("0", max(decimals-30, 0))
	whole, fraction, _ := strings.Cut(digits, ".")
	leading := len(fraction) - len(strings.TrimLeft(fraction, "0"))
	keep := leading + priceDigits
	if whole != "0" {
		keep = max(priceDigits-len(whole), 2)
	}
	if fraction = strings.TrimRight(fraction[:min(keep, len(fraction))], "0"); fraction != "" {
		return "$" + Grouped(whole+"."+fraction)
	}
	return "$" + Grouped(whole)
}

// Percent is a 30-decimal factor in percent, cut to two decimals; above a thousand times it is shown as such.
func Percent(factor chain.Uint) string {
	if chain.U64(1000).Mul(perp.One).Cmp(factor) <= 0 {
		return "> 100000 %"
	}
	return strings.TrimPrefix(USD(factor.Mul(chain.U64(100))), "$") + " %"
}

// Cost is what gas cost, in wei.
func Cost(gas, price uint64) chain.Uint { return chain.U64(gas).Mul(chain.U64(price)) }

// Moment is a time in UTC, to the second.
func Moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// FirstLine is what of an error fits into a table.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Because is a reason as it follows what happened for it: ": " and its first line, or nothing.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + FirstLine(reason)
}

// Side names a position's side.
func Side(isLong bool) string {
	if isLong {
		return "long"
	}
	return "short"
}
