package demo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/tier/execution/ledger"
)

// Expectation is what the chain must show of a time in which the keepers were left to themselves.
type Expectation struct {
	// By are the tiers that may execute, at least one of which must; none = nothing is executed.
	By []int
	// Heir is the tier that executes everything from shortly after its first job on; 0 = no tier in particular.
	Heir int
	// P99 and Oldest bound the ages of market orders and other requests when they are executed, from their own block
	// on; 0 = no bound. How old trigger orders and liquidations are the chain does not say.
	P99, Oldest time.Duration
	// Duplicates is how many transactions may come when their job is done already. None should, but for one or so where
	// a tier takes over from another that is alive: what the one has sent may land late, in the other's window (see
	// package tier), and the chain arbitrates.
	Duplicates int
}

// underWay is how long after the heir's first job others may still execute: what they had begun, and until the evidence
// for or against a tier holds for all. At that moment windows move, and a job older than one may fall to the tier after
// the heir.
const underWay = 20 * time.Second

// Check returns everything in which the rows are not what is expected, joined; nil when they are.
func (e Expectation) Check(rows []ledger.Row) error {
	totals := ledger.TotalsOf(rows).All()
	if totals.Won.Count == 0 && len(e.By) > 0 {
		return errors.New("nothing was executed")
	}
	var problems []error
	for tier, n := range totals.ByTier {
		if !slices.Contains(e.By, tier) {
			problems = append(problems, fmt.Errorf("%s executed %d jobs", roleOf(tier), n))
		}
	}
	if n := duplicates(rows); n > e.Duplicates {
		problems = append(problems, fmt.Errorf("%d transactions came when their job was done, %d may", n, e.Duplicates))
	}
	if left := waiting(rows); left > 0 {
		problems = append(problems, fmt.Errorf("%d requests were executed by nobody", left))
	}
	ages := totals.Ages(ledger.ByRequest)
	for _, age := range []struct {
		what   string
		ms     uint64
		atMost time.Duration
	}{{"99 of 100 requests were executed", ages.P99, e.P99}, {"the last request was executed", ages.Max, e.Oldest}} {
		if got := time.Duration(age.ms) * time.Millisecond; age.atMost > 0 && got > age.atMost {
			problems = append(problems, fmt.Errorf("%s at an age of %s and not %s", age.what, got, age.atMost))
		}
	}
	return errors.Join(append(problems, e.checkHeir(rows))...)
}

func (e Expectation) checkHeir(rows []ledger.Row) error {
	if e.Heir == 0 {
		return nil
	}
	var took uint64 // when the heir executed its first job
	for _, r := range rows {
		if r.Winner != nil && r.Winner.Tier == e.Heir && (took == 0 || r.Winner.TimeMs < took) {
			took = r.Winner.TimeMs
		}
	}
	if took == 0 {
		return fmt.Errorf("%s executed nothing", roleOf(e.Heir))
	}
	others := 0
	for _, r := range rows {
		if r.Winner != nil && r.Winner.Tier != e.Heir && r.Winner.TimeMs > took+uint64(underWay.Milliseconds()) {
			others++
		}
	}
	if others > 0 {
		return fmt.Errorf("others executed %d jobs more than %s after %s had begun", others, underWay, roleOf(e.Heir))
	}
	return nil
}

// duplicates counts the transactions for jobs that had been executed. Who comes after an owner has taken his order back
// is not one of them.
func duplicates(rows []ledger.Row) (n int) {
	for _, r := range rows {
		if r.Winner != nil {
			n += r.Late()
		}
	}
	return n
}

// waiting counts the requests that nobody has executed. That a trigger order or a position waits is no failing.
func waiting(rows []ledger.Row) (n int) {
	for _, r := range rows {
		if r.State == ledger.Waiting && r.BornMs > 0 {
			n++
		}
	}
	return n
}
