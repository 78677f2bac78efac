package keeperctl

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Progress is how far the filling of a generation is, in records of the log topic.
type Progress struct {
	Generation int   `json:"generation"`
	Done       int64 `json:"done"`
	Total      int64 `json:"total"`
	PerSecond  int64 `json:"per_second"`
	// Left is the time until the end at this pace, in seconds; -1 while nobody knows.
	Left int64 `json:"left_s"`

	at, since time.Time
	from      int64 // Done at since
}

// next takes in a later look.
func (p Progress) next(now Progress) Progress {
	now.since, now.from, now.Left = p.since, p.from, -1
	if p.since.IsZero() {
		now.since, now.from = now.at, now.Done
	}
	if passed := now.at.Sub(now.since); passed > 0 {
		now.PerSecond = int64(float64(now.Done-now.from) / passed.Seconds())
	}
	if now.PerSecond > 0 {
		now.Left = max(now.Total-now.Done, 0) / now.PerSecond
	}
	return now
}

// progressTo shows progress to a person, on one line that is written over, or to a program, as a line of JSON each
// time.
func progressTo(out io.Writer, terminal bool) func(Progress) {
	return func(p Progress) {
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
