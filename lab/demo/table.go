package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution/ledger"
)

// WriteScenes writes what the chain says of each scene: who executed which jobs, how old they were, what came twice,
// and the gas against that of so many keepers that all execute everything; then whether it is as expected.
func WriteScenes(out io.Writer, scenes []Scene, keepers int) error {
	w := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)}
	w.line("act", "job", "executed by", "jobs", "age p50", "p99", "oldest", "duplicates", "gas", "if everyone", "saved")
	for _, s := range scenes {
		for i, g := range groupsOf(s.Rows) {
			name := ""
			if i == 0 {
				name = s.Name
			}
			w.line(append(append([]string{name, string(g.kind), g.by}, figures(g.rows)...), "", "")...)
		}
		w.line(append(append([]string{"", "all", ""}, figures(s.Rows)...), savings(s.Rows, keepers)...)...)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out,
		"\nage: of market orders and other requests, from their own block to that of their execution; "+
			"the chain does not say when others became due\n"+
			"if everyone: the gas if each of %d keepers had sent for each job; where nobody lost, a loser is "+
			"reckoned at r times a winner (%s)\n\n",
		keepers, ratios())
	for _, s := range scenes {
		verdict := "as expected"
		if err := s.Expect.Check(s.Rows); err != nil {
			verdict = "NOT AS EXPECTED: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if _, err := fmt.Fprintf(out, "%-26s %s\n", s.Name, verdict); err != nil {
			return err
		}
	}
	return nil
}

// kindsLine returns how many kinds of jobs somebody executed, and which nobody did.
func kindsLine(rows []ledger.Row) string {
	executed := map[job.Kind]bool{}
	for _, r := range rows {
		if r.Winner != nil {
			executed[r.Kind] = true
		}
	}
	var missing []string
	for _, kind := range job.Kinds() {
		if !executed[kind] {
			missing = append(missing, string(kind))
		}
	}
	line := fmt.Sprintf("kinds of jobs executed: %d of %d", len(executed), len(job.Kinds()))
	if len(missing) > 0 {
		line += "; nobody executed: " + strings.Join(missing, ", ")
	}
	return line
}

// table leaves errors to Flush, which returns the first.
type table struct{ *tabwriter.Writer }

func (t table) line(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }

// figures are the numbers of some rows: jobs executed, their ages, duplicates, gas.
func figures(rows []ledger.Row) []string {
	sum := ledger.TotalsOf(rows).All()
	ages := sum.Ages(ledger.ByRequest)
	cells := []string{strconv.Itoa(sum.Won.Count)}
	for _, ms := range []uint64{ages.P50, ages.P99, ages.Max} {
		cell := "-"
		if ages.Count > 0 {
			cell = fmt.Sprintf("%.1f s", (time.Duration(ms) * time.Millisecond).Seconds())
		}
		cells = append(cells, cell)
	}
	return append(cells, strconv.Itoa(duplicates(rows)), strconv.FormatUint(sum.Won.Gas+sum.Late.Gas+sum.Early.Gas, 10))
}

// savings are the gas if everyone had executed, and what was saved against it.
func savings(rows []ledger.Row, keepers int) []string {
	saving, known := lossRatios.Saving(keepers, ledger.TotalsOf(rows).Kinds()...)
	if !known {
		return []string{"-", "-"}
	}
	return []string{strconv.FormatUint(saving.Everyone, 10), saving.Saved.Percent()}
}

func ratios() string {
	var parts []string
	for _, kind := range job.Kinds() {
		if r, known := lossRatios[kind]; known {
			parts = append(parts, fmt.Sprintf("%s %s", kind, r))
		}
	}
	return strings.Join(parts, ", ")
}

// group are the rows of one kind that one tier executed, or nobody.
type group struct {
	kind job.Kind
	tier int
	by   string
	rows []ledger.Row
}

func groupsOf(rows []ledger.Row) (groups []group) {
	for _, r := range rows {
		g := group{kind: r.Kind, tier: -1, by: "nobody"} // tried in vain, or taken back by the owner before it could be
		if r.Winner != nil {
			g.tier, g.by = r.Winner.Tier, roleOf(r.Winner.Tier)
		}
		i := slices.IndexFunc(groups, func(other group) bool { return other.kind == g.kind && other.tier == g.tier })
		if i < 0 {
			i = len(groups)
			groups = append(groups, g)
		}
		groups[i].rows = append(groups[i].rows, r)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.tier, b.tier))
	})
	return groups
}
