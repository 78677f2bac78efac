package liars

import (
	"fmt"
	"slices"
	"strings"
)

// table is what came of the rows, a line for each lie and a column for each variant, as docs/reliability.md has it.
type table struct {
	variants []string
	lies     []string
	cells    map[[2]string]string   // by lie and variant
	reasons  map[[2]string][]string // what waited, and for what
}

func (t *table) add(r row, cell string, reasons []string) {
	if t.cells == nil {
		t.cells, t.reasons = map[[2]string]string{}, map[[2]string][]string{}
	}
	if !slices.Contains(t.variants, r.variant()) {
		t.variants = append(t.variants, r.variant())
	}
	if !slices.Contains(t.lies, r.name) {
		t.lies = append(t.lies, r.name)
	}
	at := [2]string{r.name, r.variant()}
	t.cells[at], t.reasons[at] = cell, reasons
}

// text is the table in Markdown, with what waited for what if it is asked for.
func (t *table) text(withReasons bool) string {
	var b strings.Builder
	columns := slices.Clone(t.variants)
	if withReasons {
		columns = append(columns, "what waited, and for what")
	}
	fmt.Fprintf(&b, "| lie | %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)+1))
	for _, lie := range t.lies {
		cells := []string{lie}
		var waited []string
		for _, variant := range t.variants {
			at := [2]string{lie, variant}
			cells = append(cells, strings.ReplaceAll(t.cells[at], "|", "/"))
			waited = append(waited, t.reasons[at]...)
		}
		if withReasons {
			cells = append(cells, strings.ReplaceAll(strings.Join(waited, "<br>"), "|", "/"))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}
