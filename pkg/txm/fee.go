package txm

import (
	"errors"
	"slices"
	"time"

	"perpkeeper/pkg/check"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Gwei in wei.
const Gwei = 1_000_000_000

// Policy is what a keeper pays, and how long it waits. Start from [DefaultPolicy]. Delays are counted in blocks: when
// blocks stop, nothing can be mined and nothing is raised.
type Policy struct {
	// Floor is wei per gas.
	Floor uint64 `toml:"min_price" help:"least price that is offered, in wei per gas"`

	Liquidation Tariff `toml:"liquidation"`
	Order       Tariff `toml:"order"`
	Maintenance Tariff `toml:"maintenance"`

	// JobCost is wei. It bounds what may be spent: gas limit times price, before anything was used.
	JobCost uint64 `toml:"max_job_cost" help:"most that one transaction may cost, gas limit times price, in wei"`
	// DayCost is how a day's money was written before there were lanes, in wei; see [Policy.Money].
	DayCost uint64 `toml:"max_day_cost" help:"old, and obeyed for one release: wei that one signer may spend in 24 hours, in place of all of fee.budget; 0 = not used"`
	Budget  Budget `toml:"budget"`

	// Resend is after how many blocks an unmined transaction is broadcast again.
	Resend uint64 `toml:"resend_blocks" help:"after how many blocks an unmined transaction is broadcast again"`
	// Doubt is how long a nonce must have been spent in finalized blocks, with no receipt of ours to be found, before
	// that is believed.
	Doubt time.Duration `toml:"doubt" help:"how long a nonce must have been spent without a receipt of ours before somebody else is suspected"`
}

// Tariff is what one lane pays.
type Tariff struct {
	// Percentile is how many percent of the others the first offer keeps up with; see [Market].
	Percentile uint64 `toml:"percentile" help:"the first offer keeps up with this share of what recent blocks were paid, in percent"`
	// Patience is after how many blocks without a receipt the price is raised.
	Patience uint64 `toml:"replace_blocks" help:"after how many blocks without a receipt the price is raised"`
	// Growth is by how many percent.
	Growth uint64 `toml:"growth" help:"by how much the price is raised each time, in percent (nodes want 10 at least)"`
	// Cap is wei per gas.
	Cap uint64 `toml:"max_price" help:"highest price that is offered, in wei per gas"`
}

// MinGrowth is the least raise that nodes take for a replacement, in percent of both tip and cap.
const MinGrowth = 10

// DefaultPolicy offers BSC's practical floor of 0.05 gwei where nobody pays more. A liquidation then doubles every 2
// blocks: 5 gwei in about 6 seconds.
func DefaultPolicy() Policy {
	return Policy{
		Floor:       Gwei / 20,
		Liquidation: Tariff{Percentile: 90, Patience: 2, Growth: 100, Cap: 5 * Gwei},
		Order:       Tariff{Percentile: 60, Patience: 4, Growth: 15, Cap: 3 * Gwei},
		Maintenance: Tariff{Percentile: 60, Patience: 12, Growth: 15, Cap: Gwei},
		JobCost:     1e17, Resend: 2, Doubt: 30 * time.Second,
		Budget: Budget{Day: MustBNB("5"), Reserve: MustBNB("3")},
	}
}

// Of returns the tariff of a lane.
func (p Policy) Of(l job.Lane) Tariff {
	switch l {
	case job.LiquidationLane:
		return p.Liquidation
	case job.OrderLane:
		return p.Order
	default:
		return p.Maintenance
	}
}

// Validate names what cannot work.
func (p Policy) Validate() error {
	problems := []error{check.Refuse(p.Floor == 0, "min_price: is 0 (BSC takes nothing below %d wei)", Gwei/20)}
	for _, l := range job.Lanes() {
		most := p.Of(l).Cap
		problems = append(problems, check.Refuse(most < p.Floor, "%s.max_price: %d is below min_price %d", l, most,
			p.Floor))
	}
	return errors.Join(append(problems,
		check.Refuse(p.JobCost/MaxGas < p.Floor, "max_job_cost: %d wei do not pay for %d gas at min_price", p.JobCost,
			uint64(MaxGas)),
		check.Refuse(p.Money().Day.wei.Less(perp.U64(p.JobCost)), "budget.day: %s BNB are below max_job_cost, %s BNB",
			p.Money().Day, Wei(perp.U64(p.JobCost))),
		check.Refuse(p.Resend == 0, "resend_blocks: is 0 (use 1 or more)"),
		check.Refuse(p.Doubt <= 0, "doubt: %s is not positive", p.Doubt),
	)...)
}

// Money is what one signer may spend in a day: the budget, unless the old key is there.
func (p Policy) Money() Budget {
	if p.DayCost > 0 {
		return Budget{Day: Wei(perp.U64(p.DayCost))}
	}
	return p.Budget
}

// Validate names what cannot work.
func (t Tariff) Validate() error {
	return errors.Join(
		check.Refuse(t.Percentile > 100, "percentile: %d is above 100", t.Percentile),
		check.Refuse(t.Patience == 0, "replace_blocks: is 0 (use 1 or more)"),
		check.Between("growth", t.Growth, MinGrowth, 1000),
	)
}

// Market is what others pay just now, in wei per gas.
type Market struct {
	// Suggested is the node's own word.
	Suggested uint64
	// Paid is, for each lane, what its share of the gas of each recent block was paid at most; blocks without
	// transactions are left out.
	Paid map[job.Lane][]uint64
}

// price is the market's price for a lane: over the recent blocks, the lane's percentile of what its share of their gas
// paid.
func (m Market) price(l job.Lane, percentile uint64) uint64 {
	paid := slices.Sorted(slices.Values(m.Paid[l]))
	if len(paid) == 0 {
		return m.Suggested
	}
	return max(m.Suggested, paid[(uint64(len(paid))-1)*percentile/100])
}

// First is the price of a first transaction with a gas limit, in wei per gas, as tip and as cap: what the market pays,
// within floor and caps.
func (p Policy) First(l job.Lane, gas uint64, m Market) uint64 {
	return min(max(p.Floor, m.price(l, p.Of(l).Percentile)), p.ceiling(l, Exec, gas))
}

// Raise is the price of the next transaction at a nonce, of a kind and with a gas limit: above the newest one by the
// lane's growth, or what the market pays if that is more. It returns false where the caps leave no room for the raise
// that nodes ask for: the newest transaction then stays the last.
func (p Policy) Raise(l job.Lane, kind TxKind, gas uint64, newest SignedTx, m Market) (price uint64, ok bool) {
	before := max(newest.Tip, newest.Cap)
	least, most := raised(before, MinGrowth), p.ceiling(l, kind, gas)
	if kind != Exec && newest.Gas > EmptyGas { // the cap may have been higher when that was signed
		most = max(most, min(least, p.JobCost/max(gas, 1)))
	}
	if least > most {
		return 0, false
	}
	return min(max(least, raised(before, p.Of(l).Growth), p.First(l, gas, m)), most), true
}

// ceiling is the highest price of a transaction. What only frees a nonce burns little gas and must outbid what it
// replaces, so that it may pay a lane's cap twice over.
func (p Policy) ceiling(l job.Lane, kind TxKind, gas uint64) uint64 {
	top := min(p.Of(l).Cap, p.JobCost) // so that it can be doubled
	if kind != Exec {
		top *= 2
	}
	return min(top, p.JobCost/max(gas, 1))
}

// raised adds percents, rounded up.
func raised(price, percent uint64) uint64 { return price + (price*percent+99)/100 }

// Cost is the most a transaction may burn, in wei.
func (t SignedTx) Cost() uint64 { return t.Gas * t.Cap }
