package demo

import (
	"fmt"
	"io"
	"strings"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution/ledger"
)

// WriteScenes writes what the chain says of each scene: who executed which jobs, how old they were, what came twice,
// the gas against that of so many keepers that all execute everything; then, for all scenes, whether they are as
// expected.
func WriteScenes(out io.Writer, scenes []Scene, keepers int) error {
	for _, s := range scenes {
		_, _ = fmt.Fprintf(out, "%s\n\n", s.Name)
		if err := ledger.TotalsOf(s.Rows).Report(keepers, lossRatios).Write(out); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out)
	}
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
