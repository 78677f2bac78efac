package perp

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// Digits computed apart from this code, by the algorithm of prb-math 2.4.3 in another language's unbounded integers.
func TestPowVectors(t *testing.T) {
	for _, v := range []struct{ value, exponent, want string }{
		{"123456789012345678901234567890123456", "1850000000000000000000000000000",
			"2626048289043779225593052689000000000000"},
		{"1000000000000000000000000000000", "2200000000000000000000000000000", "1000000000000000000000000000000"},
		{"2000000000000000000000000000000", "500000000000000000000000000000", "1414213562373095048000000000000"},
		{"1000000000000000000000000000000000001", "2000000000000000000000000000000",
			"999999999999999983055432014226000000000000"},
		{"3499999999999999999999999999999999999", "1900000000000000000000000000000",
			"2714746514887355308324251038328000000000000"},
		{"1000000000000000000000000000000000000000000", "1500000000000000000000000000000",
			"999999999999999984835207442032308238000000000000"},
		{"500000000000000000000000000000000000", "1000000000000000000000000000000",
			"500000000000000000000000000000000000"},
		{"999999999999999999999999999999", "100000000000000000000000000000", "0"},
		{"70000000000000000000000000000000000000", "0", "1000000000000000000000000000000"},
		{"987654321987654321987654321987654321987", "1234567890123456789012345678901",
			"127189271117154094135045991056000000000000"},
		{"123456789000000000000000000000000000000000000000000000000000000000000", "1150000000000000000000000000000",
			"63861957105979248410822587713717010967903565604014166046937361000000000000"},
		{"98765432100000000000000000000000000000000000000000000000000", "1510000000000000000000000000000",
			"60513671292168174145993440284875994794434066038364694575108160000000000000"},
	} {
		value, err := chain.ParseUint(v.value)
		exponent, errE := chain.ParseUint(v.exponent)
		if err := errors.Join(err, errE); err != nil {
			t.Fatal(err)
		}
		if got := applyExponent(value, exponent); got.String() != v.want {
			t.Errorf("%s^%s: got %s, want %s", v.value, v.exponent, got, v.want)
		}
	}
}

func drawPower(t *rapid.T) (value, exponent chain.Uint) {
	value = chain.U64(rapid.Uint64Min(1).Draw(t, "value")).Mul(chain.Pow10(rapid.Uint64Range(11, 36).Draw(t, "digits")))
	exponent = chain.U64(rapid.Uint64Range(0, 2_500_000).Draw(t, "exponent")).Mul(chain.Pow10(24)).
		Add(chain.U64(rapid.Uint64().Draw(t, "fraction")))
	return value, exponent
}

func TestPowAgainstUnboundedIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, exponent := drawPower(t)
		var got chain.Uint
		err := chain.Checked(func() { got = applyExponent(value, exponent) })
		want := twinPow(value.Big(), exponent.Big())
		reverts := want == nil || want.BitLen() > 256
		if (err != nil) != reverts || err == nil && got.Big().Cmp(want) != 0 {
			t.Fatalf("%s^%s: got %s (%v), want %s", value, exponent, got, err, want)
		}
	})
}

// The fixed point is within its stated error of the real power: some 10^-16 of the result.
func TestPowAgainstFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := chain.U64(rapid.Uint64Range(1, 1<<50).Draw(t, "value")).
			Mul(chain.Pow10(rapid.Uint64Range(30, 31).Draw(t, "digits")))
		exponent := chain.U64(rapid.Uint64Range(0, 2_500_000).Draw(t, "exponent")).Mul(chain.Pow10(24))
		got := new(big.Float).SetInt(applyExponent(value, exponent).Big())
		want := realPow(value.Big(), exponent.Big())
		ratio, _ := new(big.Float).Quo(got, want).Float64()
		if math.Abs(ratio-1) > 3e-16 && new(big.Float).Sub(got, want).Cmp(big.NewFloat(1e13)) > 0 {
			t.Fatalf("%s^%s: got %s, want %.0f", value, exponent, got.Text('f', 0), want)
		}
	})
}

// realPow is the power of 30-decimal numbers, with hundreds of bits, by the series of logarithm and exponential.
func realPow(value, exponent *big.Int) *big.Float {
	const precision = 400
	unscaled := func(i *big.Int) *big.Float {
		f := new(big.Float).SetPrec(precision).SetInt(i)
		return f.Quo(f, new(big.Float).SetInt(e(30)))
	}
	x := new(big.Float).SetPrec(precision).Mul(realLog(unscaled(value)), unscaled(exponent))
	// e^x = (e^(x/2^20))^(2^20).
	x.SetMantExp(x, -20)
	sum, term := big.NewFloat(1).SetPrec(precision), big.NewFloat(1).SetPrec(precision)
	for i := range 60 {
		term.Mul(term, x).Quo(term, big.NewFloat(float64(i+1)))
		sum.Add(sum, term)
	}
	for range 20 {
		sum.Mul(sum, sum)
	}
	return sum.Mul(sum, new(big.Float).SetInt(e(30)))
}

// realLog is ln x = 2 artanh((x-1)/(x+1)) after halving x into [1, 2).
func realLog(x *big.Float) *big.Float {
	artanh2 := func(x *big.Float) *big.Float {
		one := big.NewFloat(1)
		z := new(big.Float).Quo(new(big.Float).Sub(x, one), new(big.Float).Add(x, one))
		square, sum, power := new(big.Float).Mul(z, z), new(big.Float).Set(z), new(big.Float).Set(z)
		for i := 3; i < 260; i += 2 {
			power.Mul(power, square)
			sum.Add(sum, new(big.Float).Quo(power, big.NewFloat(float64(i))))
		}
		return sum.Mul(sum, big.NewFloat(2))
	}
	exponent := x.MantExp(nil) - 1
	reduced := new(big.Float).SetMantExp(x, -exponent)
	two := big.NewFloat(2).SetPrec(x.Prec())
	return artanh2(reduced).Add(artanh2(reduced), new(big.Float).Mul(artanh2(two), big.NewFloat(float64(exponent))))
}

func TestPowReverts(t *testing.T) {
	for name, formula := range map[string]func(){
		"a logarithm below one":     func() { log2(chain.U64(wei18 - 1)) },
		"two to the 192nd":          func() { exp2(maxLog) },
		"more than 256 bits":        func() { applyExponent(chain.Pow10(70), chain.U64(3).Mul(One)) },
		"the product out of bounds": func() { applyExponent(chain.Pow10(77), largest) },
	} {
		if err := chain.Checked(formula); !errors.Is(err, chain.ErrArithmetic) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := applyExponent(One.Sub(chain.U64(1)), One); !got.IsZero() {
		t.Errorf("less than one is %s", got)
	}
	if got := applyExponent(chain.Pow10(40), chain.Uint{}); got != One {
		t.Errorf("the zeroth power is %s", got)
	}
}

func BenchmarkPow(b *testing.B) {
	value, exponent := dollars(12_345_678, 0), chain.U64(185).Mul(chain.Pow10(28))
	for b.Loop() {
		applyExponent(value, exponent)
	}
}
