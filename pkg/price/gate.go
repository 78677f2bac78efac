package price

import (
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/check"
)

// reason is why a report did not pass.
type reason string

// The reasons, as metrics name them.
const (
	invalid reason = "invalid" // it makes no sense, or the source sent something that is no report
	stale   reason = "stale"   // older than Gates.MaxAge
	// future: from further ahead than Gates.MaxAhead, and no other source is there yet: it would hide all that follow.
	future    reason = "future"
	spread    reason = "spread"    // minimum and maximum are further apart than Gates.MaxSpread
	jump      reason = "jump"      // further than Gates.MaxJump from the price before, and not confirmed yet
	deviation reason = "deviation" // further than Gates.MaxDeviation from every other source's report of the time
	alone     reason = "alone"     // among the first of its token, while another source has not given a report yet
)

// reasons lists them all, so that every count exists from the start.
var reasons = []reason{invalid, stale, future, spread, jump, deviation, alone}

// basis is the number of basis points in one.
const basis = 10_000

// Gates are the bounds that a report of one source must keep. Ages are measured by the chain's clock.
type Gates struct {
	// MaxAge: reports older than this are refused; a source may have its own bound.
	MaxAge time.Duration `toml:"-"`
	// MaxAhead: reports further ahead of the chain's clock are refused, unless another source is as far.
	MaxAhead time.Duration `toml:"-"`
	// MaxSpread: how far minimum and maximum may be apart, in basis points of the middle.
	MaxSpread uint64 `toml:"-"`
	// MaxJump: how far a price may move from the one before without being confirmed, in basis points.
	MaxJump      uint64 `toml:"-"`
	MaxDeviation uint64 `toml:"max_deviation" help:"how far two sources may be apart and still agree, in basis points"`
	// Confirmations: how many reports of a source in a row confirm a jump while no second source gives reports; 1 = no
	// wait.
	Confirmations int `toml:"-"`
}

// DefaultGates let a market crash through at the second report, and stop a source that is off by more than the market
// can be.
func DefaultGates() Gates {
	return Gates{MaxAge: time.Minute, MaxAhead: 2 * time.Second, MaxSpread: 500, MaxJump: 2000, MaxDeviation: 200,
		Confirmations: 2}
}

// Validate names the bound that cannot work.
func (g Gates) Validate() error {
	return check.Refuse(g.MaxDeviation < 1 || g.MaxDeviation > 100*basis,
		"max_deviation: %d is not between 1 and %d basis points", g.MaxDeviation, 100*basis)
}

// check checks a report by itself, at a Unix time in milliseconds. No reason means that it passes. A report that is
// only ahead of that time may be confirmed by other sources.
func (g Gates) check(r Report, nowMs uint64, maxAge time.Duration) (reason, error) {
	switch err := r.Validate(); {
	case err != nil:
		return invalid, err
	case r.PriceMs() < nowMs-min(nowMs, uint64(maxAge.Milliseconds())):
		return stale, fmt.Errorf("a report of %s is %d ms old", r.Token, nowMs-r.PriceMs())
	case wide(r, g.MaxSpread):
		return spread, fmt.Errorf("a report of %s from %s to %s", r.Token, r.Min, r.Max)
	case ahead(r.TimeMs, nowMs, g.MaxAhead):
		return future, fmt.Errorf("a report of %s is %d ms ahead of the chain's clock", r.Token, r.TimeMs-nowMs)
	}
	return "", nil
}

// ahead reports whether a time is later than another (Unix ms) by more than a bound.
func ahead(ms, than uint64, bound time.Duration) bool {
	return ms > than && ms-than > uint64(bound.Milliseconds())
}

// wide reports whether a valid report's spread is above a bound in basis points of its middle.
func wide(r Report, points uint64) bool {
	spread := r.Max.Sub(r.Min).Mul(chain.U64(2 * basis))
	return r.Min.Add(r.Max).Mul(chain.U64(points)).Less(spread)
}

// apart reports whether the middle of a valid report is further from that of another than a bound in basis points of
// the other.
func apart(r, from Report, points uint64) bool {
	a, b := r.Min.Add(r.Max), from.Min.Add(from.Max)
	distance := a.Max(b).Sub(a.Min(b)).Mul(chain.U64(basis))
	return b.Mul(chain.U64(points)).Less(distance)
}
