package keeperctl

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"perpkeeper/pkg/operator/generation"
)

// progressTo shows progress to a person, on one line that is written over, or to a program, as a line of JSON each
// time.
func progressTo(out io.Writer, terminal bool) func(generation.Progress) {
	return func(p generation.Progress) {
		if !terminal {
			line, _ := json.Marshal(p) // numbers can always be written
			_, _ = fmt.Fprintf(out, "%s\n", line)
			return
		}
		left := "?"
		if p.Left >= 0 {
			left = (time.Duration(p.Left) * time.Second).String()
		}
		end := "\r"
		if p.Done >= p.Total {
			end = "\n"
		}
		_, _ = fmt.Fprintf(out, "generation %d: %5.1f %% (%d of %d records), %d records/s, %s left   %s",
			p.Generation, 100*float64(p.Done)/float64(max(p.Total, 1)), p.Done, p.Total, p.PerSecond, left, end)
	}
}
