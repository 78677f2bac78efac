package price

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

// usdDecimals are the decimals of USD in a Report.
const usdDecimals = 30

// PerUnit converts a source's price of one whole token, value·10^exponent USD, into a report's USD with 30 decimals per
// smallest unit of a token with so many decimals: min rounded down and max rounded up, so that the exact price is never
// outside. The conversion is exact in between. The error means that the price does not fit 256 bits.
func PerUnit(low, high chain.Uint, exponent int, decimals uint8) (lowest, highest chain.Uint, err error) {
	shift := exponent + usdDecimals - int(decimals)
	if lowest, err = scaled(low, shift, chain.Uint.Div); err == nil {
		highest, err = scaled(high, shift, chain.Uint.DivUp)
	}
	if err != nil {
		return chain.Uint{}, chain.Uint{}, fmt.Errorf("a price of %s..%s·10^%d per token of %d decimals: %w", low,
			high, exponent, decimals, err)
	}
	return lowest, highest, nil
}

// scaled is v·10^shift.
func scaled(v chain.Uint, shift int, divide func(a, b chain.Uint) chain.Uint) (r chain.Uint, err error) {
	const most = 77 // 10^78 does not fit 256 bits
	switch {
	case v.IsZero():
		return v, nil
	case shift > most:
		return chain.Uint{}, chain.ErrArithmetic
	case shift < -most: // less than one unit, whatever it is: 2^256 < 10^78
		return divide(chain.U64(1), chain.U64(2)), nil
	}
	err = chain.Checked(func() {
		if shift >= 0 {
			r = v.Mul(chain.Pow10(uint64(shift)))
		} else {
			r = divide(v, chain.Pow10(uint64(-shift)))
		}
	})
	return r, err
}
