package txm

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// weiDigits is how many decimals a BNB has.
const weiDigits = 18

// BNB is an amount of money. It is wei, of any size that 256 bits hold, and is written in BNB as a decimal: "0.5".
// There is no rounding either way.
type BNB struct{ wei chain.Uint }

// Wei returns an amount of so many wei.
func Wei(wei chain.Uint) BNB { return BNB{wei} }

// MustBNB reads a decimal that is known to be one.
func MustBNB(text string) (b BNB) {
	if err := b.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return b
}

// Wei returns the amount in wei.
func (b BNB) Wei() chain.Uint { return b.wei }

// UnmarshalText implements encoding.TextUnmarshaler: digits, with at most 18 behind a point.
func (b *BNB) UnmarshalText(text []byte) error {
	wei, err := chain.ParseDecimal(string(text), weiDigits)
	if err != nil {
		return fmt.Errorf("no amount in BNB (write it as 0.5): %w", err)
	}
	b.wei = wei
	return nil
}

// MarshalText implements encoding.TextMarshaler, as the shortest decimal.
func (b BNB) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String writes the amount in BNB, without the unit.
func (b BNB) String() string { return b.wei.Decimal(weiDigits) }

// ByLane is an amount of wei for each lane. A lane that is missing has none.
type ByLane map[job.Lane]chain.Uint

// Sum is that of all lanes.
func (l ByLane) Sum() (sum chain.Uint) {
	for _, wei := range l {
		sum = sum.Add(wei)
	}
	return sum
}

// Add adds wei to a lane.
func (l ByLane) Add(lane job.Lane, wei chain.Uint) { l[lane] = l[lane].Add(wei) }

// Budget is what one signer may spend in 24 hours, net of the execution fees that the venue has paid it for what it
// sent. What is in flight counts in full: gas limit times price.
type Budget struct {
	Day     BNB `toml:"day" help:"most that one signer may spend in 24 hours over all lanes, in BNB, net of execution fees that were booked for it; what is in flight counts in full"`
	Reserve BNB `toml:"liquidation_reserve" help:"how much of it only liquidations and deleveragings may spend, in BNB"`
	// Cleanup bounds what is spent without any hope of a fee. It may be above the day's.
	Cleanup BNB `toml:"cleanup" help:"most of it for cancels of what expired (planner.cancel_expired), for which no fee comes back, in BNB; 0 = all but the reserve"`
}

// Limit is how many wei all lanes together may have spent when one is spent for a lane, and how many that lane alone.
func (b Budget) Limit(lane job.Lane) (all, own chain.Uint) {
	day := b.Day.wei
	if lane == job.LiquidationLane {
		return day, day
	}
	all = less(day, b.Reserve.wei)
	if lane == job.CleanupLane && !b.Cleanup.wei.IsZero() {
		return all, b.Cleanup.wei.Min(all)
	}
	return all, all
}

// Allows reports whether so many wei more may be spent for a lane, when so much was burnt and earned in a day. Nothing
// may always be spent: what costs no more than what it replaces needs no money.
func (b Budget) Allows(lane job.Lane, wei chain.Uint, burnt, earned ByLane) bool {
	all, own := b.Limit(lane)
	return wei.IsZero() || !all.Less(less(burnt.Sum(), earned.Sum()).Add(wei)) &&
		!own.Less(less(burnt[lane], earned[lane]).Add(wei))
}

// Used is which part of its day's money a lane has spent, for people: 1 is all of it. It is that of the limit which is
// nearer, the lane's own or that of all lanes.
func (b Budget) Used(lane job.Lane, burnt, earned ByLane) float64 {
	all, own := b.Limit(lane)
	return max(part(less(burnt.Sum(), earned.Sum()), all), part(less(burnt[lane], earned[lane]), own))
}

func part(spent, limit chain.Uint) float64 {
	if limit.IsZero() {
		return 1
	}
	return spent.Float() / limit.Float()
}

// less subtracts down to nothing.
func less(a, b chain.Uint) chain.Uint { return a.Sub(a.Min(b)) }
