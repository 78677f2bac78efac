package price

import (
	"fmt"

	"perpkeeper/pkg/perp"
)

// usdDecimals are the decimals of USD in a Report.
const usdDecimals = 30

// PerUnit converts a source's price of one whole token, value·10^exponent USD, into a report's USD with 30 decimals per
// smallest unit of a token with so many decimals: min rounded down and max rounded up, so that the exact price is never
// outside. The conversion is exact in between. The error means that the price does not fit 256 bits.
func PerUnit(low, high perp.Uint, exponent int, decimals uint8) (lowest, highest perp.Uint, err error) {
	shift := exponent + usdDecimals - int(decimals)
	if lowest, err = scaled(low, shift, perp.Uint.Div); err == nil {
		highest, err = scaled(high, shift, perp.Uint.DivUp)
	}
	if err != nil {
		return perp.Uint{}, perp.Uint{}, fmt.Errorf("a price of %s..%s·10^%d per token of %d decimals: %w", low, high,
			exponent, decimals, err)
	}
	return lowest, highest, nil
}

// scaled is v·10^shift.
func scaled(v perp.Uint, shift int, divide func(a, b perp.Uint) perp.Uint) (r perp.Uint, err error) {
	const most = 77 // 10^78 does not fit 256 bits
	switch {
	case v.IsZero():
		return v, nil
	case shift > most:
		return perp.Uint{}, perp.ErrArithmetic
	case shift < -most: // less than one unit, whatever it is: 2^256 < 10^78
		return divide(perp.U64(1), perp.U64(2)), nil
	}
	err = perp.Checked(func() {
		if shift >= 0 {
			r = v.Mul(perp.Pow10(uint64(shift)))
		} else {
			r = divide(v, perp.Pow10(uint64(-shift)))
		}
	})
	return r, err
}
