package price

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

func TestPerUnit(t *testing.T) {
	for _, tt := range []struct {
		low, high uint64
		exponent  int
		decimals  uint8
		want      [2]string
	}{
		// $5000 per 10^18
		{5000, 5001, 0, 18, [2]string{"5000000000000000", "5001000000000000"}},
		// Pyth's exponent
		{184136023127, 184136023128, -8, 18, [2]string{"1841360231270000", "1841360231280000"}},
		// a dollar per 10^6
		{99_990_000, 100_010_000, -8, 6, [2]string{"999900000000000000000000", "1000100000000000000000000"}},
		{19, 11, -1, 30, [2]string{"1", "2"}}, // too coarse: down and up
		{7, 7, -100, 18, [2]string{"0", "1"}},
		{0, 0, 90, 0, [2]string{"0", "0"}},
	} {
		low, high, err := PerUnit(chain.U64(tt.low), chain.U64(tt.high), tt.exponent, tt.decimals)
		if err != nil || low.String() != tt.want[0] || high.String() != tt.want[1] {
			t.Errorf("%+v: %s, %s, %v", tt, low, high, err)
		}
	}
	for _, exponent := range []int{48, 47, 1000} {
		if _, _, err := PerUnit(chain.U64(1), chain.U64(12), exponent, 0); err == nil {
			t.Errorf("12·10^%d fits", exponent+30)
		}
	}
}

// The exact price is never outside of what it is converted to, and never further off than one unit.
func TestPerUnitIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 1, 32).Draw(t, "value"))
		exponent, decimals := rapid.IntRange(-120, 60).Draw(t, "exponent"), rapid.Uint8Range(0, 36).Draw(t, "decimals")
		v, err := chain.UintFromBig(value)
		if err != nil {
			t.Fatal(err)
		}
		shift := exponent + 30 - int(decimals)
		up, down := big.NewInt(1), big.NewInt(1)
		if shift >= 0 {
			up.Exp(big.NewInt(10), big.NewInt(int64(shift)), nil)
		} else {
			down.Exp(big.NewInt(10), big.NewInt(int64(-shift)), nil)
		}
		floor, rest := new(big.Int).QuoRem(new(big.Int).Mul(value, up), down, new(big.Int))
		ceil := new(big.Int).Add(floor, big.NewInt(int64(rest.Sign())))
		low, high, err := PerUnit(v, v, exponent, decimals)
		if fits := ceil.BitLen() <= 256; fits != (err == nil) {
			t.Fatalf("%s·10^%d: %v", value, shift, err)
		}
		if err == nil && (low.Big().Cmp(floor) != 0 || high.Big().Cmp(ceil) != 0) {
			t.Fatalf("%s·10^%d: %s..%s, want %s..%s", value, shift, low, high, floor, ceil)
		}
	})
}
