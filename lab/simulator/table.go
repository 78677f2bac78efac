package simulator

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"perpkeeper/pkg/job"
)

// Result is the result of a scenario.
type Result struct {
	Scenario Scenario
	Plays    []Play
}

// Misses are the expectations that were not met and the promises that were broken, one line each; none where all is as
// it should be.
func (r Result) Misses() (lines []string) {
	for _, p := range r.Plays {
		for _, b := range p.Broken {
			lines = append(lines, fmt.Sprintf("seed %d: %s", p.Seed, b))
		}
	}
	for _, e := range r.Scenario.Expect {
		if miss := e.Miss(r.Plays); miss != "" {
			lines = append(lines, miss)
		}
	}
	return lines
}

// Write prints the result for people: a table by kind of job, and the verdict.
func (r Result) Write(out io.Writer) error {
	s := r.Scenario
	// Flush returns any error
	_, _ = fmt.Fprintf(out, "%s: %s\n%d keepers, policy %s, %s for %s, seeds 1 to %d\n\n",
		s.Name, s.Says, s.Keepers, s.Policy, s.Jobs.rate(), time.Duration(s.Duration), len(r.Plays))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(table, "jobs\t\t%s\tmean\tp50\tp99\tmax\tduplicates\tgas saved\t\n",
		strings.Join(executorNames(s.Keepers), "\t"))
	all := choose(r.Plays, func(JobResult) bool { return true })
	for _, k := range kinds {
		if of := slices.DeleteFunc(slices.Clone(all), func(f JobResult) bool { return f.Kind != k }); len(of) > 0 {
			_, _ = fmt.Fprintf(table, "%s\t%s\t\n", kindName(k), strings.Join(figures(of, s.Keepers), "\t"))
		}
	}
	_, _ = fmt.Fprintf(table, "all\t%s\t\n", strings.Join(figures(all, s.Keepers), "\t"))
	if err := table.Flush(); err != nil {
		return err
	}
	return r.writeVerdict(out)
}

func (r Result) writeVerdict(out io.Writer) error {
	verdict := fmt.Sprintf("as expected (%d expectations):", len(r.Scenario.Expect))
	var lines []string
	for _, e := range r.Scenario.Expect {
		lines = append(lines, e.Says(r.Plays))
	}
	if misses := r.Misses(); len(misses) > 0 {
		verdict, lines = "NOT as expected:", misses
	}
	_, err := fmt.Fprintf(out, "\n%s\n  %s\n", verdict, strings.Join(lines, "\n  "))
	return err
}

// figures are the cells of one line: how many jobs, executed by whom, how old they were, and what was wasted.
func figures(results []JobResult, keepers int) []string {
	cells := []string{fmt.Sprint(len(results))}
	for tier := 1; tier <= keepers; tier++ {
		cells = append(cells, percent(percentOf(results, func(f JobResult) bool { return f.Executor == tier })))
	}
	cells = append(cells, percent(percentOf(results, func(f JobResult) bool { return !f.Done() })))
	ages := agesOf(results)
	for _, age := range []float64{meanOf(ages), quantile(ages, 0.5), quantile(ages, 0.99), quantile(ages, 1)} {
		cells = append(cells, seconds(age))
	}
	return append(cells, percent(duplicatesOf(results)), percent(savingOf(results, keepers)))
}

func executorNames(keepers int) []string {
	var names []string
	for tier := 1; tier <= keepers; tier++ {
		names = append(names, tierName(tier))
	}
	return append(names, "nobody")
}

func tierName(tier int) string {
	if tier == 1 {
		return "Master"
	}
	return fmt.Sprintf("Backup-%d", tier-1)
}

func kindName(k job.Kind) string {
	switch k {
	case job.Order:
		return "market orders"
	case limitOrder:
		return "limit orders"
	default:
		return string(k) + "s"
	}
}

func percent(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v == 0 || v == 100:
		return fmt.Sprintf("%.0f %%", v)
	}
	return fmt.Sprintf("%.2f %%", v)
}

func seconds(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f s", v)
}

// rate returns how often jobs come, as text.
func (j Jobs) rate() string {
	if j.PerDay > 0 {
		return fmt.Sprintf("%g jobs a day", j.PerDay)
	}
	return fmt.Sprintf("%g jobs/s", j.PerSecond)
}

// savingOf is how much less gas the executed jobs took than if every keeper had sent each of them at once, in per cent
// (TIER-18).
func savingOf(results []JobResult, keepers int) float64 {
	used, everyone := 0.0, 0.0
	for _, f := range results {
		if f.Done() {
			used += float64(f.Gas + f.LostGas)
			everyone += float64(f.Gas) * (1 + float64(keepers-1)*lossRatio(f.Kind))
		}
	}
	return 100 * (1 - used/everyone)
}

// lossRatio is what a losing transaction costs, as a share of a winning one, measured on the original contracts.
func lossRatio(k job.Kind) float64 {
	if k == job.Liquidation {
		return 0.54
	}
	return 0.24
}
