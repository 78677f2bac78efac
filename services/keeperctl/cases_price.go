package keeperctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"perpkeeper/pkg/perp"
)

// casePrice is USD per whole token.
type casePrice struct{ Min, Max decimal }

// UnmarshalJSON reads [min, max] or one price for both, each a number or a text.
func (p *casePrice) UnmarshalJSON(text []byte) error {
	var both []decimal
	if err := json.Unmarshal(text, &both); err == nil {
		if len(both) != 2 {
			return fmt.Errorf("price %s: want [min, max]", text)
		}
		p.Min, p.Max = both[0], both[1]
		return nil
	}
	if err := json.Unmarshal(text, &p.Min); err != nil {
		return fmt.Errorf("price %s: want [min, max] in USD per whole token", text)
	}
	p.Max = p.Min
	return nil
}

// decimal is digits·10^exponent.
type decimal struct {
	digits   string
	exponent int
}

var errNoDecimal = errors.New("it is no decimal number")

// doubleDigits is how many decimal digits a 64-bit float keeps. What a program wrote beyond them, as in
// 5199.4800000000005, is its own noise.
const doubleDigits = 15

// UnmarshalJSON reads a text with a decimal, exactly, or a JSON number, to as many digits as its writer could have
// meant: 4599.54 or 1e-05.
func (d *decimal) UnmarshalJSON(text []byte) error {
	written, isText := strings.CutPrefix(string(text), `"`)
	if err := d.parse(strings.TrimSuffix(written, `"`)); err != nil {
		return err
	}
	if isText || len(d.digits) <= doubleDigits {
		return nil
	}
	value, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return errNoDecimal
	}
	return d.parse(strconv.FormatFloat(value, 'e', doubleDigits-1, 64))
}

func (d *decimal) parse(text string) error {
	mantissa, power, scientific := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits, d.exponent = strings.TrimLeft(whole+fraction, "0"), -len(fraction)
	if scientific {
		shift, err := strconv.Atoi(power)
		if err != nil || shift < -100 || shift > 100 {
			return errNoDecimal
		}
		d.exponent += shift
	}
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return errNoDecimal
	}
	trimmed := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(trimmed)
	d.digits = trimmed
	return nil
}

// perUnit is the price of a token's smallest unit in USD with 30 decimals. It fails where that is no whole number.
func (d *decimal) perUnit(decimals int) (perp.Uint, error) {
	zeros := d.exponent + 30 - decimals
	if d.digits == "" || zeros < 0 || zeros+len(d.digits) > 78 {
		return perp.Uint{}, fmt.Errorf("%se%d USD cannot be the price of a token of %d decimals", d.digits, d.exponent,
			decimals)
	}
	return perp.ParseUint(d.digits + strings.Repeat("0", zeros))
}

// float is the price per whole token, to tell tokens apart by.
func (d *decimal) float() float64 {
	value, _ := strconv.ParseFloat(fmt.Sprintf("%se%d", d.digits, d.exponent), 64) // a price of no digits is 0
	return value
}
