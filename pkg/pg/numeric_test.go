package pg

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// big4 is the dumb twin: digits to the base 10000 of a big integer, as the server documents them.
func big4(n *big.Int) (digits []uint16) {
	base, rest := big.NewInt(numericBase), new(big.Int).Abs(n)
	for rest.Sign() > 0 {
		var digit big.Int
		rest.DivMod(rest, base, &digit)
		digits = append([]uint16{uint16(digit.Uint64())}, digits...)
	}
	return digits
}

// Numbers are written as the server reads them, and read back as they were.
func TestNumericForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := chain.UintFromBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "word"))
		if zeros := rapid.Uint64Range(0, 60).Draw(t, "zeros"); rapid.Bool().Draw(t, "round") {
			number = chain.U64(rapid.Uint64Range(0, 9999).Draw(t, "few")).Mul(chain.Pow10(zeros))
		}
		form := appendNumeric(nil, magnitudeOf(number.Bytes32()), false)
		want := big4(number.Big())
		weight := max(len(want)-1, 0)
		for len(want) > 0 && want[len(want)-1] == 0 {
			want = want[:len(want)-1]
		}
		if got := len(form)/2 - 4; got != len(want) || int(form[1]) != len(want) || int(form[3]) != weight {
			t.Fatalf("%s became %x, want %d digits and weight %d", number, form, len(want), weight)
		}
		for i, d := range want {
			if got := uint16(form[8+2*i])<<8 | uint16(form[9+2*i]); got != d {
				t.Fatalf("%s became %x: digit %d is %d, want %d", number, form, i, got, d)
			}
		}
		if back, err := parseUint(form); err != nil || back != number {
			t.Fatalf("%s became %s, %v", number, back, err)
		}
	})
}

// Signed numbers keep to their range.
func TestNumericSigned(t *testing.T) {
	top := chain.U64(1).Bytes32()
	top[0], top[31] = 0x80, 0
	if lowest, err := parseInt(appendNumeric(nil, magnitudeOf(top), true)); err != nil ||
		lowest != chain.IntFromWord(top) {
		t.Errorf("-2^255 became %s, %v", lowest, err)
	}
	if _, err := parseInt(appendNumeric(nil, magnitudeOf(top), false)); err == nil {
		t.Error("2^255 was taken for a signed number")
	}
	if _, err := parseUint(appendNumeric(nil, magnitude{1}, true)); err == nil {
		t.Error("-1 was taken for an unsigned number")
	}
}

// What the server might send never panics, and what is accepted is what its bytes say.
func FuzzParseNumeric(f *testing.F) {
	for _, seed := range []string{"", "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07", "\x00\x00\x00\x00\xc0\x00\x00\x00",
		"\x00\x01\xff\xff\x00\x00\x00\x01\x13\x88"} {
		f.Add([]byte(seed))
	}
	f.Add(appendNumeric(nil, magnitude{1, 2, 3, 4}, true))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, negative, err := parseNumeric(src)
		if err != nil {
			return
		}
		again, negativeToo, err := parseNumeric(appendNumeric(nil, m, negative))
		if err != nil || again != m || negativeToo != negative {
			t.Errorf("%x is %v, %t and became %v, %t, %v", src, m, negative, again, negativeToo, err)
		}
	})
}

// A journal entry that is not a tuple of its table is refused, whatever it is.
func FuzzTuple(f *testing.F) {
	good, err := layouts[perp.Parameters].encode(nil, perp.Parameter{Source: perp.FromCall})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(good, 0))
	f.Add([]byte(strings.Repeat("\xff", 40)))
	f.Fuzz(func(t *testing.T, tuple []byte) {
		s := newRowSet(perp.Parameters)
		if err := s.add(tuple); (err == nil) != (s.rows == 1) {
			t.Errorf("%x: %v, %d rows", tuple, err, s.rows)
		}
		total := 0
		for _, c := range s.columns {
			total += len(c) - arrayHeader
		}
		if s.rows == 1 && total != len(tuple) {
			t.Errorf("%x left %d bytes", tuple, total)
		}
	})
}
