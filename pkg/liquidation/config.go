package liquidation

import (
	"errors"
	"fmt"
	"strings"

	"perpkeeper/pkg/perp"
)

// Config is the [liquidation] section, the same for planner and sender of a keeper.
type Config struct {
	FireRatio Ratio `toml:"fire_ratio" help:"liquidate below this margin ratio: 1 is the rule of GMX (it refuses above); 1.10 only for a venue that liquidates at 110 %"`
	Workers   int   `toml:"workers" help:"positions judged in parallel by one sweep"`
}

// DefaultConfig is the venue's plain rule, judged by 10 workers (LIQ-4, LIQ-5).
func DefaultConfig() Config { return Config{FireRatio: Ratio{perp.One}, Workers: 10} }

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	var problems []error
	if c.FireRatio.Factor.Less(perp.One) || perp.U64(2).Mul(perp.One).Less(c.FireRatio.Factor) {
		problems = append(problems, fmt.Errorf("fire_ratio: %s is not between 1 and 2 (1 is the rule of GMX)", c.FireRatio))
	}
	if c.Workers < 1 || c.Workers > 256 {
		problems = append(problems, fmt.Errorf("workers: %d is not between 1 and 256", c.Workers))
	}
	return errors.Join(problems...)
}

// Ratio is a margin ratio as a factor with 30 decimals, written as a decimal: 1.10.
type Ratio struct{ Factor perp.Uint }

// String returns the decimal form.
func (r Ratio) String() string {
	whole := r.Factor.Div(perp.One)
	fraction := r.Factor.Sub(whole.Mul(perp.One)).String()
	fraction = strings.TrimRight(strings.Repeat("0", 30-len(fraction))+fraction, "0")
	if fraction == "" {
		return whole.String()
	}
	return whole.String() + "." + fraction
}

// MarshalText returns the decimal form.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a decimal of at most 30 digits after the point.
func (r *Ratio) UnmarshalText(text []byte) error {
	whole, fraction, _ := strings.Cut(string(text), ".")
	if len(fraction) > 30 || len(whole) > 9 {
		return fmt.Errorf("%q is no ratio: write a decimal such as 1.10", text)
	}
	factor, err := perp.ParseUint(whole + fraction + strings.Repeat("0", 30-len(fraction)))
	if err != nil || whole == "" {
		return fmt.Errorf("%q is no ratio: write a decimal such as 1.10", text)
	}
	r.Factor = factor
	return nil
}
