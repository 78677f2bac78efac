package pg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"perpkeeper/pkg/chain"
)

// The server's binary form of numeric: number of digits, weight of the first, sign and scale, two bytes each, and then
// the digits to the base 10000.
const (
	numericBase     = 10_000
	numericHeader   = 8
	numericNegative = 0x4000
	maxDigits       = 20 // of a 256-bit number
)

var errNumeric = errors.New("not an integer of 256 bits")

// magnitude is a 256-bit number, its lowest word first.
type magnitude [4]uint64

func magnitudeOf(word [32]byte) (m magnitude) {
	for i := range m {
		m[i] = binary.BigEndian.Uint64(word[24-8*i:])
	}
	return m
}

func (m *magnitude) word() (word [32]byte) {
	for i := range m {
		binary.BigEndian.PutUint64(word[24-8*i:], m[i])
	}
	return word
}

// appendNumeric appends an integer without leading or trailing zeros, so that equal numbers have equal bytes.
func appendNumeric(dst []byte, m magnitude, negative bool) []byte {
	const step = numericBase * numericBase * numericBase * numericBase
	var digits [maxDigits]uint16
	first := maxDigits
	for top := 3; first > 0; {
		for top >= 0 && m[top] == 0 {
			top--
		}
		if top < 0 {
			break
		}
		var rest uint64
		for i := top; i >= 0; i-- {
			m[i], rest = bits.Div64(rest, m[i], step)
		}
		for range 4 {
			first--
			digits[first] = uint16(rest % numericBase)
			rest /= numericBase
		}
	}
	for first < maxDigits && digits[first] == 0 {
		first++
	}
	end := maxDigits
	for end > first && digits[end-1] == 0 {
		end--
	}
	var sign uint16
	if negative {
		sign = numericNegative
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(end-first))
	dst = binary.BigEndian.AppendUint16(dst, uint16(max(maxDigits-first-1, 0)))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = append(dst, 0, 0) // no digits after the point
	for _, d := range digits[first:end] {
		dst = binary.BigEndian.AppendUint16(dst, d)
	}
	return dst
}

// parseNumeric reads what appendNumeric writes, and whatever else the server may make of it.
func parseNumeric(src []byte) (m magnitude, negative bool, err error) {
	if len(src) < numericHeader {
		return m, false, fmt.Errorf("%d bytes: %w", len(src), errNumeric)
	}
	count := int(binary.BigEndian.Uint16(src))
	weight := int(int16(binary.BigEndian.Uint16(src[2:])))
	sign := binary.BigEndian.Uint16(src[4:])
	digits := src[numericHeader:]
	if len(digits) != 2*count || sign != 0 && sign != numericNegative || count > 0 &&
		(weight < count-1 || weight >= maxDigits) {
		return m, false, fmt.Errorf("%x: %w", src, errNumeric)
	}
	for i := range max(weight+1, 0) {
		var digit uint64
		if i < count {
			digit = uint64(binary.BigEndian.Uint16(digits[2*i:]))
		}
		if count == 0 {
			break
		}
		if digit >= numericBase || !m.shift(digit) {
			return m, false, fmt.Errorf("%x: %w", src, errNumeric)
		}
	}
	return m, sign == numericNegative, nil
}

// shift appends a digit; it returns false when the number no longer fits.
func (m *magnitude) shift(digit uint64) bool {
	carry := digit
	for i := range m {
		high, low := bits.Mul64(m[i], numericBase)
		var over uint64
		m[i], over = bits.Add64(low, carry, 0)
		carry = high + over
	}
	return carry == 0
}

func parseUint(src []byte) (chain.Uint, error) {
	m, negative, err := parseNumeric(src)
	if err == nil && negative {
		err = fmt.Errorf("%x is negative: %w", src, errNumeric)
	}
	word := m.word()
	return chain.UintFromBytes(word[:]), err
}

func parseInt(src []byte) (chain.Int, error) {
	m, negative, err := parseNumeric(src)
	if err != nil {
		return chain.Int{}, err
	}
	const top = 1 << 63
	if m[3] >= top && (!negative || m != magnitude{0, 0, 0, top}) {
		return chain.Int{}, fmt.Errorf("%x does not fit a signed number: %w", src, errNumeric)
	}
	if negative {
		carry := uint64(1)
		for i := range m {
			m[i], carry = bits.Add64(^m[i], 0, carry)
		}
	}
	return chain.IntFromWord(m.word()), nil
}
