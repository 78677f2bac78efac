package ledger

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"perpkeeper/pkg/chain"
)

const rowFormat = "%-14s %-14s %-12s %-19s %10s %9s %11s %5s %6s %12s\n"

// WriteHeader writes the heads of the columns of [Row.Write].
func WriteHeader(w io.Writer) error {
	_, err := fmt.Fprintf(w, rowFormat, "kind", "key", "result", "executed by", "block", "age", "gas", "late", "early",
		"gas lost")
	return err
}

// Write writes the account of one job as a line. An age by reports is at least so much, and one that nobody knows is
// "-".
func (r Row) Write(w io.Writer) error {
	by, block, gas := "-", "-", "-"
	if r.Winner != nil {
		by, block, gas = r.Winner.who(), strconv.FormatUint(r.Winner.Block, 10), grouped(r.Winner.Gas)
	}
	var lost uint64
	for _, l := range r.Losers {
		lost += l.Gas
	}
	late := r.Late()
	_, err := fmt.Fprintf(w, rowFormat, r.Kind, short(r.Key[:]), cmp.Or(string(r.Result), string(r.State)), by, block,
		r.age(), gas,
		number(late), number(len(r.Losers)-late), grouped(lost))
	return err
}

// who names a signer and its tier.
func (t Tx) who() string {
	if t.Tier == 0 {
		return "unknown " + shortAddress(t.From)
	}
	return fmt.Sprintf("tier %d %s", t.Tier, shortAddress(t.From))
}

func (r Row) age() string {
	switch r.AgeBy {
	case ByRequest:
		return seconds(r.AgeMs)
	case ByReports:
		return "≥" + seconds(r.AgeMs)
	}
	return "-"
}

// Write writes the sums as tables: who executed what and how old jobs were, then what it cost and what sharing saved.
func (r Report) Write(w io.Writer) error {
	kinds := r.Kinds
	if len(kinds) != 1 {
		kinds = append(slices.Clip(kinds), r.All)
	}
	if err := r.writeJobs(w, kinds); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := r.writeCosts(w, kinds); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w,
		"\neveryone = the gas if each of %d keepers had sent for each job, a loser at r times a winner's; "+
			"* = no loser to measure r by, so it was given\n"+
			"ages above = by price reports: liquidations and trigger orders were at least so old\n"+
			"other transactions of keepers: %d, %s gas, %s wei\n", r.Keepers, r.Other.Count, grouped(r.Other.Gas),
		r.Other.Wei)
	return err
}

func (r Report) writeJobs(w io.Writer, kinds []KindReport) error {
	table := newTable(w)
	tiers := slices.Sorted(maps.Keys(r.All.ByTier))
	head := []string{"kind", "jobs"}
	for _, tier := range tiers {
		head = append(head, tierName(tier))
	}
	table.line(append(head, "withdrawn", "waiting", "attempted", "age p50", "p99", "max", "ages above: p50", "max")...)
	for _, k := range kinds {
		cells := []string{string(k.Kind), number(k.Jobs)}
		for _, tier := range tiers {
			cells = append(cells, number(k.ByTier[tier]))
		}
		cells = append(cells, number(k.Withdrawn), number(k.Waiting), number(k.Attempted))
		cells = append(cells, k.Ages.cells(k.Ages.P50, k.Ages.P99, k.Ages.Max)...)
		table.line(append(cells, k.AgesAbove.cells(k.AgesAbove.P50, k.AgesAbove.Max)...)...)
	}
	return table.Flush()
}

func (r Report) writeCosts(w io.Writer, kinds []KindReport) error {
	table := newTable(w)
	table.line("kind", "won", "gas", "late", "gas lost", "early", "gas lost", "wei spent", "r", "everyone", "saved",
		"at most")
	for _, k := range kinds {
		cells := []string{
			string(k.Kind), number(k.Won.Count), grouped(k.Won.Gas), number(k.Late.Count), grouped(k.Late.Gas),
			number(k.Early.Count), grouped(k.Early.Gas),
			k.Won.plus(k.Late).plus(k.Early).Wei.String(),
		}
		table.line(append(cells, k.saving()...)...)
	}
	return table.Flush()
}

// saving is the last columns of the costs.
func (k KindReport) saving() []string {
	ratio := "-"
	if k.LossRatio != nil {
		ratio = k.LossRatio.String()
		if k.Late.Count == 0 {
			ratio += "*"
		}
	}
	if k.Saving == nil {
		return []string{ratio, "-", "-", "-"}
	}
	return []string{ratio, grouped(k.Saving.Everyone), k.Saving.Saved.Percent(), k.Saving.AtMost.Percent()}
}

func (a Ages) cells(ms ...uint64) (cells []string) {
	for _, age := range ms {
		if a.Count == 0 {
			cells = append(cells, "-")
		} else {
			cells = append(cells, seconds(age))
		}
	}
	return cells
}

// columns is a table whose columns are as wide as what stands in them.
type columns struct{ *tabwriter.Writer }

func newTable(w io.Writer) columns {
	return columns{tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
}

// line leaves errors to Flush, which returns the first.
func (c columns) line(cells ...string) { _, _ = fmt.Fprintln(c, strings.Join(cells, "\t")+"\t") }

func tierName(tier int) string {
	if tier == 0 {
		return "unknown"
	}
	return fmt.Sprintf("tier %d", tier)
}

func seconds(ms uint64) string {
	return (time.Duration(ms) * time.Millisecond).Round(10 * time.Millisecond).String()
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// grouped writes a number with its thousands apart.
func grouped(n uint64) string {
	if n == 0 {
		return "-"
	}
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func short(b []byte) string { return fmt.Sprintf("0x%x…%x", b[:3], b[len(b)-2:]) }

func shortAddress(a chain.Address) string { return short(a[:]) }
