package chain

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/holiman/uint256"
)

// ErrArithmetic is what a computation ends in when the contract's would revert: overflow of 256 bits, a division by
// zero, a negative result where none may be. See [Checked].
var ErrArithmetic = errors.New("arithmetic overflow")

// Uint is an unsigned 256-bit integer with value semantics, as Solidity's uint256: token amounts in the token's
// smallest unit, USD and factors with 30 decimals. Methods that cannot be represented panic with [ErrArithmetic]; run
// formulas under [Checked].
type Uint struct{ w uint256.Int }

// U64 returns v as a Uint.
func U64(v uint64) Uint { return Uint{*uint256.NewInt(v)} }

// Pow10 returns 10^n for n up to 77.
func Pow10(n uint64) Uint {
	var r Uint
	r.w.Exp(uint256.NewInt(10), uint256.NewInt(n))
	return r
}

// ParseUint reads a decimal number.
func ParseUint(s string) (u Uint, err error) {
	if err := u.w.SetFromDecimal(s); err != nil || s == "" || s[0] == '+' {
		return Uint{}, fmt.Errorf("%q is no unsigned 256-bit decimal", s)
	}
	return u, nil
}

// ParseDecimal reads what [Uint.Decimal] writes: digits, with at most so many places behind a point, as a number times
// 10^places. There is no rounding.
func ParseDecimal(text string, places int) (Uint, error) {
	whole, fraction, pointed := strings.Cut(text, ".")
	if whole == "" || pointed && fraction == "" || len(fraction) > places ||
		strings.Trim(whole+fraction, "0123456789") != "" {
		return Uint{}, fmt.Errorf("%q is no decimal with up to %d places", text, places)
	}
	return ParseUint(whole + fraction + strings.Repeat("0", places-len(fraction)))
}

// UintFromBytes reads up to 32 big-endian bytes.
func UintFromBytes(b []byte) (u Uint) {
	u.w.SetBytes(b)
	return u
}

// UintFromBig converts a non-negative big integer of at most 256 bits.
func UintFromBig(b *big.Int) (Uint, error) {
	v, over := uint256.FromBig(b)
	if over || b.Sign() < 0 {
		return Uint{}, fmt.Errorf("%s does not fit an unsigned 256-bit integer: %w", b, ErrArithmetic)
	}
	return Uint{*v}, nil
}

// Big returns a fresh big integer.
func (a Uint) Big() *big.Int { return a.w.ToBig() }

// Bytes32 returns the big-endian word.
func (a Uint) Bytes32() [32]byte { return a.w.Bytes32() }

// Uint64 returns the value and whether it fits 64 bits.
func (a Uint) Uint64() (v uint64, fits bool) { return a.w.Uint64(), a.w.IsUint64() }

// Uint256 returns the number in the library's form, which can shift and count bits.
func (a Uint) Uint256() uint256.Int { return a.w }

// UintOf is the inverse of [Uint.Uint256].
func UintOf(w uint256.Int) Uint { return Uint{w} }

// Float returns an approximation, for filters and dashboards only.
func (a Uint) Float() float64 { return a.w.Float64() }

// IsZero reports whether a is zero.
func (a Uint) IsZero() bool { return a.w.IsZero() }

// Cmp compares as -1, 0, 1.
func (a Uint) Cmp(b Uint) int { return a.w.Cmp(&b.w) }

// Less reports a < b.
func (a Uint) Less(b Uint) bool { return a.w.Lt(&b.w) }

// Int returns a as a signed number. It panics with [ErrArithmetic] above 2^255-1.
func (a Uint) Int() Int { return IntOf(false, a) }

// Add returns a+b.
func (a Uint) Add(b Uint) (r Uint) {
	_, over := r.w.AddOverflow(&a.w, &b.w)
	must(!over)
	return r
}

// Sub returns a-b.
func (a Uint) Sub(b Uint) (r Uint) {
	_, over := r.w.SubOverflow(&a.w, &b.w)
	must(!over)
	return r
}

// Mul returns a*b.
func (a Uint) Mul(b Uint) (r Uint) {
	_, over := r.w.MulOverflow(&a.w, &b.w)
	must(!over)
	return r
}

// Div returns a/b, rounded down.
func (a Uint) Div(b Uint) (r Uint) {
	must(!b.IsZero())
	r.w.Div(&a.w, &b.w)
	return r
}

// DivUp returns a/b, rounded up.
func (a Uint) DivUp(b Uint) (r Uint) {
	must(!b.IsZero())
	var rem uint256.Int
	r.w.DivMod(&a.w, &b.w, &rem)
	if !rem.IsZero() {
		r = r.Add(U64(1))
	}
	return r
}

// MulDiv returns a*b/d with a 512-bit product, rounded down.
func (a Uint) MulDiv(b, d Uint) (r Uint) {
	must(!d.IsZero())
	_, over := r.w.MulDivOverflow(&a.w, &b.w, &d.w)
	must(!over)
	return r
}

// MulDivUp returns a*b/d with a 512-bit product, rounded up.
func (a Uint) MulDivUp(b, d Uint) Uint {
	r := a.MulDiv(b, d)
	if rem := new(uint256.Int).MulMod(&a.w, &b.w, &d.w); !rem.IsZero() {
		r = r.Add(U64(1))
	}
	return r
}

// Min returns the smaller of a and b.
func (a Uint) Min(b Uint) Uint {
	if b.Less(a) {
		return b
	}
	return a
}

// Max returns the larger of a and b.
func (a Uint) Max(b Uint) Uint {
	if a.Less(b) {
		return b
	}
	return a
}

// String returns the decimal form.
func (a Uint) String() string { return a.w.Dec() }

// Decimal writes the number divided by 10^places, exactly, as the shortest decimal.
func (a Uint) Decimal(places int) string {
	digits := a.String()
	digits = strings.Repeat("0", max(places+1-len(digits), 0)) + digits
	whole, fraction := digits[:len(digits)-places], strings.TrimRight(digits[len(digits)-places:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// MarshalText returns the decimal form; in JSON the number is a string, because it may exceed what JSON readers keep
// exactly.
func (a Uint) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the decimal form.
func (a *Uint) UnmarshalText(b []byte) (err error) {
	*a, err = ParseUint(string(b))
	return err
}

// Checked runs a formula and returns [ErrArithmetic] where the contract's own arithmetic would revert.
func Checked(formula func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); !ok || !errors.Is(e, ErrArithmetic) {
				panic(r)
			}
			err = ErrArithmetic
		}
	}()
	formula()
	return nil
}

func must(ok bool) {
	if !ok {
		panic(ErrArithmetic)
	}
}
