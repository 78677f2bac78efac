package chain

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/holiman/uint256"
)

// Int is a signed 256-bit integer with value semantics, as Solidity's int256. It is kept as sign and magnitude; zero is
// never negative, so values compare with ==. Methods that cannot be represented panic with [ErrArithmetic]; run
// formulas under [Checked].
type Int struct {
	neg bool
	abs Uint
}

var (
	minMagnitude = Uint{*new(uint256.Int).Lsh(uint256.NewInt(1), 255)} // |-2^255|
	maxMagnitude = minMagnitude.Sub(U64(1))
)

// IntOf returns a magnitude with its sign. It panics with [ErrArithmetic] where that does not fit.
func IntOf(neg bool, abs Uint) Int {
	if neg {
		must(!minMagnitude.Less(abs))
	} else {
		must(!maxMagnitude.Less(abs))
	}
	return Int{neg: neg && !abs.IsZero(), abs: abs}
}

// I64 returns v as an Int.
func I64(v int64) Int {
	if v < 0 {
		return IntOf(true, U64(uint64(-(v+1))+1))
	}
	return IntOf(false, U64(uint64(v)))
}

// ParseInt reads a decimal number with an optional minus sign.
func ParseInt(s string) (Int, error) {
	digits, neg := strings.CutPrefix(s, "-")
	abs, err := ParseUint(digits)
	if err != nil || maxMagnitude.Less(abs) && !(neg && abs == minMagnitude) {
		return Int{}, fmt.Errorf("%q is no signed 256-bit decimal", s)
	}
	return IntOf(neg, abs), nil
}

// IntFromWord reads a two's-complement word, as the ABI encodes int256.
func IntFromWord(word [32]byte) Int {
	w := UintFromBytes(word[:])
	if word[0] < 0x80 {
		return Int{abs: w}
	}
	var abs Uint
	abs.w.Neg(&w.w)
	return Int{neg: true, abs: abs}
}

// Word returns the two's-complement word.
func (a Int) Word() [32]byte {
	w := a.abs.w
	if a.neg {
		w.Neg(&w)
	}
	return w.Bytes32()
}

// Big returns a fresh big integer.
func (a Int) Big() *big.Int {
	b := a.abs.Big()
	if a.neg {
		b.Neg(b)
	}
	return b
}

// Sign returns -1, 0 or 1.
func (a Int) Sign() int {
	switch {
	case a.neg:
		return -1
	case a.abs.IsZero():
		return 0
	}
	return 1
}

// Abs returns the magnitude.
func (a Int) Abs() Uint { return a.abs }

// Uint returns a as an unsigned number. It panics with [ErrArithmetic] below zero.
func (a Int) Uint() Uint {
	must(!a.neg)
	return a.abs
}

// Neg returns -a.
func (a Int) Neg() Int { return IntOf(!a.neg, a.abs) }

// Add returns a+b.
func (a Int) Add(b Int) Int {
	if a.neg == b.neg {
		return IntOf(a.neg, a.abs.Add(b.abs))
	}
	if a.abs.Less(b.abs) {
		return IntOf(b.neg, b.abs.Sub(a.abs))
	}
	return IntOf(a.neg, a.abs.Sub(b.abs))
}

// Sub returns a-b.
func (a Int) Sub(b Int) Int {
	if b.abs == minMagnitude && b.neg {
		// -b has no representation; a-b has one when a is negative.
		must(a.neg)
		return IntOf(false, b.abs.Sub(a.abs))
	}
	return a.Add(b.Neg())
}

// Mul returns a*b.
func (a Int) Mul(b Int) Int { return IntOf(a.neg != b.neg, a.abs.Mul(b.abs)) }

// Cmp compares as -1, 0, 1.
func (a Int) Cmp(b Int) int {
	switch {
	case a.neg && !b.neg:
		return -1
	case !a.neg && b.neg:
		return 1
	case a.neg:
		return b.abs.Cmp(a.abs)
	}
	return a.abs.Cmp(b.abs)
}

// Less reports a < b.
func (a Int) Less(b Int) bool { return a.Cmp(b) < 0 }

// String returns the decimal form.
func (a Int) String() string {
	if a.neg {
		return "-" + a.abs.String()
	}
	return a.abs.String()
}

// MarshalText returns the decimal form.
func (a Int) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the decimal form.
func (a *Int) UnmarshalText(b []byte) (err error) {
	*a, err = ParseInt(string(b))
	return err
}
