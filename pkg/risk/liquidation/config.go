package liquidation

import (
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/setting/check"
)

// Config is the [liquidation] section, the same for planner and sender of a keeper.
type Config struct {
	FireRatio Ratio `toml:"fire_ratio" help:"liquidate below this margin ratio: 1 is GMX's rule (it refuses above); 1.10 only where a venue liquidates at 110 %"`
	Workers   int   `toml:"workers" help:"positions judged in parallel by one sweep"`
	// VolatilityWindow is that of LIQ-1.
	VolatilityWindow time.Duration `toml:"-"`
	// Spacing is the answer to thin liquidity of a venue that closes whole positions only (LIQ-13).
	Spacing Ratio `toml:"spacing" help:"liquidations larger than this share of the side's open interest are published one a block and market; 0 = no spacing"`
}

// DefaultConfig is the venue's plain rule, judged by 10 workers (LIQ-4, LIQ-5).
func DefaultConfig() Config {
	return Config{FireRatio: Ratio{perp.One}, Workers: 10, VolatilityWindow: time.Minute}
}

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	return errors.Join(
		check.Refuse(c.FireRatio.Factor.Less(perp.One) || chain.U64(2).Mul(perp.One).Less(c.FireRatio.Factor),
			"fire_ratio: %s is not between 1 and 2 (1 is the rule of GMX)", c.FireRatio),
		check.Between("workers", c.Workers, 1, 256),
	)
}

// Armed is the margin ratio below which positions are kept judged: that of the armed tier, or the one at which the
// venue liquidates if that is higher.
func (c Config) Armed() chain.Uint { return ArmedRatio.Max(c.FireRatio.Factor) }

// Ratio is a margin ratio as a factor with 30 decimals, written as a decimal: 1.10.
type Ratio struct{ Factor chain.Uint }

// String returns the decimal form.
func (r Ratio) String() string { return r.Factor.Decimal(30) }

// MarshalText returns the decimal form.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a decimal of at most 30 digits after the point.
func (r *Ratio) UnmarshalText(text []byte) error {
	factor, err := chain.ParseDecimal(string(text), 30)
	if err != nil || !factor.Less(chain.Pow10(39)) {
		return fmt.Errorf("%q is no ratio: write a decimal such as 1.10", text)
	}
	r.Factor = factor
	return nil
}
