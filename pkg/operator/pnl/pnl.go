// Package pnl is what a keeper's signers earned and spent: execution fees that the venue paid for their transactions,
// less the gas of all their transactions. What carries logs of the venue is the chain's word; what left none is known
// from this keeper's own receipts. It is pure; Archive.ProfitAndLoss of pkg/pg/txstore reads a [Statement], and whoever
// shows one (keeperctl, a console) adds it up here, so that all show the same.
//
// Guaranteed: integers in wei, over final blocks only, so that a figure once shown does not change. A signer's balance
// after the range is that before it, plus [Line.Net], plus what somebody moved to or from it by other than keeping
// ([Account.Moved]).
// Not guaranteed: the gas of transactions that another database has sent and that left no log (reverted, or freeing a
// nonce), which nothing here knows; [Account.Missing] counts them. Kinds and markets of transactions that this
// keeper's database does not know (a restored backup, a signer that was another keeper's): they stand under an empty
// kind and the zero market.
package pnl

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Purpose is what transactions were for, and whether they came to it.
type Purpose string

// The purposes. Gas of the latter two has earned nothing.
const (
	// Executed: the call to the venue went through.
	Executed Purpose = "executed"
	// Lost: the call was mined and reverted; as a rule another keeper had been first.
	Lost Purpose = "lost"
	// Freed: a payment to oneself, which only used up a nonce.
	Freed Purpose = "freed"
)

// Entry is the transactions and fees of a statement that have everything but their amounts in common.
type Entry struct {
	Signer  chain.Address
	Kind    job.Kind      // of the job; empty where the database does not know the transaction
	Market  chain.Address // zero where it does not, and for jobs of no market
	Purpose Purpose

	Transactions int
	Fees         chain.Uint // wei the venue paid (KeeperExecutionFee)
	Gas          chain.Uint // wei burnt, at the price that each transaction paid
}

// Statement is what some signers earned and spent in a range of final blocks.
type Statement struct {
	Generation int // of the state it was read from
	// First is the first block of the range in which anything happened, 0 where nothing did, and Last the final block
	// that it ends with.
	First, Last uint64
	// SinceMs and UntilMs are the bounds of the range by the blocks' times, in Unix milliseconds.
	SinceMs, UntilMs uint64
	Entries          []Entry
	Accounts         []Account
}

// Account is one signer in a statement.
type Account struct {
	Signer chain.Address
	// Missing is how many nonces between the first and the last of the range have no transaction that is known: another
	// database sent it, and it left no log. Their gas is in no figure.
	Missing int
	// Booked is what of the range's fees the ledger has booked to the signer's agent, in wei; it follows the chain by
	// one scan of the delayed jobs, and is 0 for a signer without an agent.
	Booked chain.Uint
}

// Moved is what changed a signer's balance and is neither a fee nor gas, in wei: what was sent to it, less what was
// sent away. before and after are its balances on the chain, at the end of the block below the statement's first, and
// of its last.
func (Account) Moved(before, after chain.Uint, own Line) chain.Int {
	return after.Int().Sub(before.Int()).Sub(own.Net())
}

// Findings say what the figures cannot be trusted for; none when they are whole.
func (s Statement) Findings() (found []string) {
	for _, a := range s.Accounts {
		if a.Missing > 0 {
			found = append(found, fmt.Sprintf("another database sent %d transactions of signer %s that left no "+
				"log: their gas is not in these figures", a.Missing, a.Signer))
		}
		if fees := s.Of(a.Signer).Fees; fees.Less(a.Booked) {
			found = append(found, fmt.Sprintf("the ledger has booked %s wei for signer %s, and the state has fees "+
				"of %s (keeperctl wallet verify)", a.Booked, a.Signer, fees))
		}
	}
	return found
}

// Line is a sum of entries.
type Line struct {
	Name string

	Transactions, Lost, Freed int
	// Gas is all gas; LostGas and FreedGas are parts of it. All in wei.
	Fees, Gas, LostGas, FreedGas chain.Uint
}

// Net is what is left, in wei; it may be less than nothing.
func (l Line) Net() chain.Int { return l.Fees.Int().Sub(l.Gas.Int()) }

// with is the line with an entry added.
func (l Line) with(e Entry) Line {
	l.Transactions += e.Transactions
	l.Fees, l.Gas = l.Fees.Add(e.Fees), l.Gas.Add(e.Gas)
	switch e.Purpose {
	case Executed:
	case Lost:
		l.Lost, l.LostGas = l.Lost+e.Transactions, l.LostGas.Add(e.Gas)
	case Freed:
		l.Freed, l.FreedGas = l.Freed+e.Transactions, l.FreedGas.Add(e.Gas)
	}
	return l
}

// Periods names the ranges that people ask for, back from the newest final block.
func Periods() []string { return []string{"day", "week"} }

// Period is how long a range of that name is; 0 for a name that is none.
func Period(name string) time.Duration {
	const day = 24 * time.Hour
	return map[string]time.Duration{"day": day, "week": 7 * day}[name]
}

// Dimension is what lines are grouped by.
type Dimension string

// The dimensions.
const (
	ByKind   Dimension = "kind"
	BySigner Dimension = "signer"
	ByMarket Dimension = "market"
)

// Dimensions lists every dimension.
func Dimensions() []Dimension { return []Dimension{ByKind, BySigner, ByMarket} }

// ParseDimension reads a dimension as people write it.
func ParseDimension(text string) (Dimension, error) {
	if d := Dimension(text); slices.Contains(Dimensions(), d) {
		return d, nil
	}
	return "", fmt.Errorf("%q is none of %q", text, Dimensions())
}

// of is the name of the line that an entry belongs to.
func (d Dimension) of(e Entry) string {
	switch d {
	case BySigner:
		return e.Signer.Hex()
	case ByMarket:
		if e.Market.IsZero() {
			return "none"
		}
		return e.Market.Hex()
	default:
		return cmp.Or(string(e.Kind), "unknown")
	}
}

// By sums a statement up along a dimension, by name.
func (s Statement) By(d Dimension) []Line {
	sums := map[string]Line{}
	for _, e := range s.Entries {
		name := d.of(e)
		sum := sums[name].with(e)
		sum.Name = name
		sums[name] = sum
	}
	lines := make([]Line, 0, len(sums))
	for _, l := range sums {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines
}

// Total sums a statement up.
func (s Statement) Total() Line {
	l := Line{Name: "total"}
	for _, e := range s.Entries {
		l = l.with(e)
	}
	return l
}

// Of sums up what is one signer's.
func (s Statement) Of(signer chain.Address) Line {
	l := Line{Name: signer.Hex()}
	for _, e := range s.Entries {
		if e.Signer == signer {
			l = l.with(e)
		}
	}
	return l
}
