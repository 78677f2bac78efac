package chain

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The dumb twin of Uint and Int is math/big with the bounds of Solidity.
var (
	twinMaxUint = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	twinMaxInt  = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(1))
	twinMinInt  = new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 255))
)

func drawWord(t *rapid.T, label string) [32]byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, label)
	return UintFromBytes(b).Bytes32()
}

func twinInt(word [32]byte) *big.Int {
	v := new(big.Int).SetBytes(word[:])
	if word[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), 256))
	}
	return v
}

func TestIntAgainstBig(t *testing.T) {
	ops := map[string]struct {
		ours func(a, b Int) Int
		twin func(a, b *big.Int) *big.Int
	}{
		"add": {Int.Add, func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }},
		"sub": {Int.Sub, func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }},
		"mul": {Int.Mul, func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }},
	}
	for name, op := range ops {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			wa, wb := drawWord(t, "a"), drawWord(t, "b")
			a, b := IntFromWord(wa), IntFromWord(wb)
			if a.Word() != wa || a.Big().Cmp(twinInt(wa)) != 0 || a.Cmp(b) != twinInt(wa).Cmp(twinInt(wb)) {
				t.Fatalf("word, big or order of %v", a)
			}
			var got Int
			err := Checked(func() { got = op.ours(a, b) })
			want := op.twin(twinInt(wa), twinInt(wb))
			if fits := want != nil && want.Cmp(twinMaxInt) <= 0 && want.Cmp(twinMinInt) >= 0; fits != (err == nil) {
				t.Fatalf("%v %s %v: error %v, twin %v", a, name, b, err, want)
			}
			if err == nil && (got.Big().Cmp(want) != 0 || got != IntFromWord(got.Word())) {
				t.Fatalf("%v %s %v: got %v, want %v", a, name, b, got, want)
			}
		}))
	}
}

func TestUintAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wa, wb, wd := drawWord(t, "a"), drawWord(t, "b"), drawWord(t, "d")
		a, b, d := UintFromBytes(wa[:]), UintFromBytes(wb[:]), UintFromBytes(wd[:])
		if d.IsZero() {
			d = U64(1)
		}
		check := func(name string, ours func() Uint, want *big.Int) {
			var got Uint
			err := Checked(func() { got = ours() })
			if fits := want.Sign() >= 0 && want.Cmp(twinMaxUint) <= 0; fits != (err == nil) || err == nil && got.Big().
				Cmp(want) != 0 {
				t.Fatalf("%s of %v %v %v: got %v (%v), want %v", name, a, b, d, got, err, want)
			}
		}
		product := new(big.Int).Mul(a.Big(), b.Big())
		check("add", func() Uint { return a.Add(b) }, new(big.Int).Add(a.Big(), b.Big()))
		check("sub", func() Uint { return a.Sub(b) }, new(big.Int).Sub(a.Big(), b.Big()))
		check("mul", func() Uint { return a.Mul(b) }, product)
		check("muldiv", func() Uint { return a.MulDiv(b, d) }, new(big.Int).Div(product, d.Big()))
		ceiling := new(big.Int).Add(product, new(big.Int).Sub(d.Big(), big.NewInt(1)))
		check("muldivup", func() Uint { return a.MulDivUp(b, d) }, ceiling.Div(ceiling, d.Big()))
		up := new(big.Int).Add(a.Big(), new(big.Int).Sub(d.Big(), big.NewInt(1)))
		check("divup", func() Uint { return a.DivUp(d) }, up.Div(up, d.Big()))
		back, err := ParseUint(a.String())
		if err != nil || back != a {
			t.Fatalf("text round trip of %v: %v, %v", a, back, err)
		}
	})
}

func TestParseRefusesBadNumbers(t *testing.T) {
	for _, s := range []string{"", "-", "+1", "1.5", "0x10", "1e3", " 1", new(big.Int).Add(twinMaxUint, big.NewInt(1)).
		String()} {
		if v, err := ParseUint(s); err == nil {
			t.Errorf("ParseUint(%q) = %v", s, v)
		}
		if v, err := ParseInt(s); err == nil {
			t.Errorf("ParseInt(%q) = %v", s, v)
		}
	}
	if v, err := ParseInt(twinMinInt.String()); err != nil || v.Big().Cmp(twinMinInt) != 0 {
		t.Errorf("the smallest int256: %v, %v", v, err)
	}
	if v, err := ParseInt(new(big.Int).Sub(twinMinInt, big.NewInt(1)).String()); err == nil {
		t.Errorf("below the smallest int256: %v", v)
	}
}
