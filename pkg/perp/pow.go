package perp

import (
	"math/big"
	"math/bits"

	"github.com/holiman/uint256"

	"perpkeeper/pkg/chain"
)

// wei18 is one in the 18-decimal fixed point in which the contracts raise to powers.
const wei18 = 1_000_000_000_000_000_000

var (
	one18      = chain.U64(wei18)
	floatToWei = chain.Pow10(12)           // Precision.FLOAT_TO_WEI_DIVISOR
	maxLog     = chain.U64(192).Mul(one18) // PRBMathUD60x18.exp2 refuses from here on
	halfRoots  = fractionsOfRootsOf2()     // see exp2
)

// applyExponent raises a 30-decimal number to a 30-decimal power as the chain does (Precision.applyExponentFactor over
// PRBMathUD60x18.pow of prb-math 2.4.3), digit for digit: what is less than one becomes zero, a power of one changes
// nothing, and all else loses the digits after the 18th and carries the error of the fixed-point logarithm, some 10^-16
// of the result for values of trillions.
func applyExponent(value, exponent chain.Uint) chain.Uint {
	switch {
	case value.Less(One):
		return chain.Uint{}
	case exponent == One:
		return value
	}
	return pow18(value.Div(floatToWei), exponent.Div(floatToWei)).Mul(floatToWei)
}

// pow18 is PRBMathUD60x18.pow for x of at least one: 2^(y·log2 x), the product rounded to the nearest
// (PRBMath.mulDivFixedPoint).
func pow18(x, y chain.Uint) chain.Uint {
	log := log2(x)
	power := log.MulDiv(y, one18)
	a, b, one := log.Uint256(), y.Uint256(), one18.Uint256()
	var rest uint256.Int
	if rest.MulMod(&a, &b, &one); rest.Uint64() >= wei18/2 {
		power = power.Add(chain.U64(1))
	}
	return exp2(power)
}

// log2 is PRBMathUD60x18.log2: the whole part from the highest bit, the rest bit by bit by squaring what remains. It
// reverts below one.
func log2(x chain.Uint) chain.Uint {
	must(!x.Less(one18))
	whole, shifted := x.Div(one18).Uint256(), x.Uint256()
	n := whole.BitLen() - 1
	y := shifted.Rsh(&shifted, uint(n)).Uint64() // in [1, 2)
	var fraction uint64
	for delta := uint64(wei18 / 2); delta > 0 && y != wei18; delta >>= 1 {
		hi, lo := bits.Mul64(y, y)
		if y, _ = bits.Div64(hi, lo, wei18); y >= 2*wei18 {
			fraction += delta
			y >>= 1
		}
	}
	return chain.U64(uint64(n)).Mul(one18).Add(chain.U64(fraction))
}

// exp2 is PRBMathUD60x18.exp2 with PRBMath.exp2: the product of the roots 2^(1/2^i) for the set bits of the fraction,
// in a number of 191 bits after the point, cut off after each step. It reverts from 2^192 on.
func exp2(x chain.Uint) chain.Uint {
	must(x.Less(maxLog))
	var rest uint256.Int
	whole, one := x.Uint256(), one18.Uint256()
	whole.DivMod(&whole, &one, &rest)
	fraction, _ := bits.Div64(rest.Uint64(), 0, wei18)
	r := uint256.Int{0, 0, 1 << 63}
	for fraction != 0 {
		highest := bits.LeadingZeros64(fraction)
		growBy(&r, halfRoots[highest])
		fraction &^= 1 << (63 - highest)
	}
	r.Mul(&r, &one)
	return chain.UintOf(*r.Rsh(&r, uint(191-whole.Uint64())))
}

// growBy adds r·c/2^64, cut off, to r, which has three words before and after.
func growBy(r *uint256.Int, c uint64) {
	h0, _ := bits.Mul64(r[0], c)
	h1, l1 := bits.Mul64(r[1], c)
	h2, l2 := bits.Mul64(r[2], c)
	p0, carry := bits.Add64(l1, h0, 0)
	p1, carry := bits.Add64(l2, h1, carry)
	p2 := h2 + carry
	r[0], carry = bits.Add64(r[0], p0, 0)
	r[1], carry = bits.Add64(r[1], p1, carry)
	r[2], _ = bits.Add64(r[2], p2, carry)
}

// fractionsOfRootsOf2 returns 2^(1/2^i) - 1 for i = 1 to 64, with 64 bits after the point, rounded to the nearest.
// These are the factors that PRBMath.exp2 has as constants, without their leading one.
func fractionsOfRootsOf2() (roots [64]uint64) {
	const precision = 256
	root := big.NewFloat(2).SetPrec(precision)
	for i := range roots {
		root.Sqrt(root)
		scaled := new(big.Float).SetMantExp(new(big.Float).Sub(root, big.NewFloat(1)), 64)
		rounded, _ := scaled.Add(scaled, big.NewFloat(0.5)).Int(nil)
		roots[i] = rounded.Uint64()
	}
	return roots
}

// must reverts where the contract would.
func must(ok bool) {
	if !ok {
		panic(chain.ErrArithmetic)
	}
}
