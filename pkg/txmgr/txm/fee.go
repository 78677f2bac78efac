package txm

import (
	"errors"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/check"
)

// Gwei in wei.
const Gwei = 1_000_000_000

// Policy is what a keeper pays, and how long it waits. Start from [DefaultPolicy]. Delays are counted in blocks: when
// blocks stop, nothing can be mined and nothing is raised.
type Policy struct {
	// Floor is wei per gas.
	Floor uint64 `toml:"-"`

	Liquidation Tariff `toml:"liquidation"`
	Order       Tariff `toml:"order"`
	Maintenance Tariff `toml:"maintenance"`

	// JobCost is wei. It bounds what may be spent: gas limit times price, before anything was used.
	JobCost uint64 `toml:"max_job_cost" help:"most that one transaction may cost, gas limit times price, in wei"`
	Budget  Budget `toml:"budget"`

	// LostAfter is how long a nonce must have been spent in finalized blocks, with no receipt of ours to be found,
	// before that is believed.
	LostAfter time.Duration `toml:"-"`
}

// Tariff is what one lane pays.
type Tariff struct {
	// Percentile is how many percent of the others the first offer keeps up with; see [Market].
	Percentile uint64 `toml:"-"`
	// Patience is after how many blocks without a receipt the price is raised.
	Patience uint64 `toml:"-"`
	// Growth is by how many percent.
	Growth uint64 `toml:"-"`
	// Cap is wei per gas.
	Cap uint64 `toml:"max_price" help:"highest price that is offered, in wei per gas"`
}

// MinGrowth is the least raise that nodes take for a replacement, in percent of both tip and cap.
const MinGrowth = 10

// resend is after how many blocks what no node has refused is broadcast again at the latest: since bsc 1.8 nodes do
// not announce again what they were given.
const resend uint64 = 2

// DefaultPolicy offers BSC's practical floor of 0.05 gwei where nobody pays more. A liquidation then doubles every 2
// blocks: 5 gwei in about 6 seconds. The day's budget lets a signer pay for 250 of a thousand liquidations in one tick
// at the cap of volatile markets: 2.4 million gas at 10 gwei each are 6 BNB, and what is in flight counts in full.
func DefaultPolicy() Policy {
	return Policy{
		Floor:       Gwei / 20,
		Liquidation: Tariff{Percentile: 90, Patience: 2, Growth: 100, Cap: 5 * Gwei},
		Order:       Tariff{Percentile: 60, Patience: 4, Growth: 15, Cap: 3 * Gwei},
		Maintenance: Tariff{Percentile: 60, Patience: 12, Growth: 15, Cap: Gwei},
		JobCost:     1e17, LostAfter: 30 * time.Second,
		Budget: Budget{Day: MustBNB("8"), Reserve: MustBNB("5"), Cleanup: MustBNB("0.05")},
	}
}

// Of returns the tariff of a lane. The cleanup pays as the maintenance.
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
	least := chain.U64(MaxGas).Mul(chain.U64(p.Floor))
	cleanup := p.Budget.Cleanup
	var problems []error
	for _, l := range job.Lanes() {
		most := p.Of(l).Cap
		problems = append(problems, check.Refuse(most < p.Floor, "%s.max_price: %d is below BSC's least, %d", l, most,
			p.Floor))
	}
	return errors.Join(append(problems,
		check.Refuse(p.JobCost/MaxGas < p.Floor, "max_job_cost: %d wei do not pay for %d gas at BSC's least price",
			p.JobCost, uint64(MaxGas)),
		check.Refuse(p.Budget.Day.wei.Less(chain.U64(p.JobCost)), "budget.day: %s BNB are below max_job_cost, %s BNB",
			p.Budget.Day, Wei(chain.U64(p.JobCost))),
		check.Refuse(p.Liquidation.Cap < p.Order.Cap, "liquidation.max_price: %d is below order.max_price, %d "+
			"(raise it: a liquidation may inherit the place of an order)", p.Liquidation.Cap, p.Order.Cap),
		check.Refuse(less(p.Budget.Day.wei, p.Budget.Reserve.wei).Less(least), "budget.liquidation_reserve: %s BNB "+
			"leave other lanes nothing of budget.day, %s (lower it)", p.Budget.Reserve, p.Budget.Day),
		check.Refuse(!cleanup.wei.IsZero() && cleanup.wei.Less(least), "budget.cleanup: %s BNB pay for no "+
			"transaction, which may cost %s (raise it, or set 0 for no limit)", cleanup, Wei(least)),
	)...)
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
// within floor and caps. A liquidation offers one wei more: of our own, blocks take it before what is less urgent.
func (p Policy) First(l job.Lane, gas uint64, m Market) uint64 {
	price := p.Asks(l, m)
	if l == job.LiquidationLane {
		price++
	}
	return min(price, p.ceiling(l, Exec, gas))
}

// Asks is what the market asks of a lane, in wei per gas, whatever the caps are. A wei above a thousand is what our own
// liquidations offer more, come back in what nodes suggest: it is left out, so that they do not outbid each other.
func (p Policy) Asks(l job.Lane, m Market) uint64 {
	price := max(p.Floor, m.price(l, p.Of(l).Percentile))
	if price%1000 == 1 {
		price--
	}
	return price
}

// Raise is the price of the next transaction at a nonce, of a kind and with a gas limit: above the newest one by the
// lane's growth, or what the market pays if that is more. It returns false where the caps leave no room for the raise
// that nodes ask for: the newest transaction then stays the last.
func (p Policy) Raise(l job.Lane, kind TxKind, gas uint64, newest SignedTx, m Market) (price uint64, ok bool) {
	before := newest.Price()
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

// Price is what a transaction offers, in wei per gas.
func (t SignedTx) Price() uint64 { return max(t.Tip, t.Cap) }

// Cost is the most a transaction may burn, in wei.
func (t SignedTx) Cost() uint64 { return t.Gas * t.Cap }
