// Package doctor has the checks of `keeperctl doctor` made, and keeps what they found.
//
// They are made by that very program, as a process of its own: it reads the settings of every process of the keeper,
// which the console has not, and whatever goes wrong in it ends with it. Guaranteed: at most one run at a time, for no
// longer than a bound; what is shown is of the last run that ended. A run writes nothing, but it asks every endpoint
// and every source of prices: it is for somebody who wants to know, and not made by itself.
package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Finding is a fault: where, how bad ("failure" or "warning"), what was seen, and what to do.
type Finding struct {
	Check    string `json:"check"`
	Area     string `json:"area"`
	Severity string `json:"severity"`
	About    string `json:"about"`
	Seen     string `json:"seen"`
	Fix      string `json:"fix"`
	Runbook  string `json:"runbook"`
}

// Area is the result of an area of checks.
type Area struct {
	Area     string `json:"area"`
	Checks   int    `json:"checks"`
	Findings int    `json:"findings"`
}

// Report is the findings of a run.
type Report struct {
	Well     bool      `json:"well"`
	Findings []Finding `json:"findings"`
	Areas    []Area    `json:"areas"`
}

// State is the last run, and the one that is under way.
type State struct {
	Report *Report // nil before the first run that ended well
	// Problem is the reason why the last run came to no report; empty if it came to one.
	Problem string
	Began   time.Time     // of the last run that ended; zero before
	Took    time.Duration // of the same
	Who     string        // asked for the last one, or for the one that is under way
	Since   time.Time     // when the one that is under way began; zero if none is
}

// Doctor runs the checks. Command is the program with its arguments; a name without a folder is looked for beside this
// program first.
type Doctor struct {
	Command []string
	Now     func() time.Time

	mutex sync.Mutex
	state State
}

// longest bounds a run, and most the bytes of its answer.
const (
	longest = 3 * time.Minute
	most    = 4 << 20
)

// State returns how it stands.
func (d *Doctor) State() State {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.state
}

// Able reports whether there is a program to run.
func (d *Doctor) Able() bool { return len(d.Command) > 0 }

// Start begins a run that ends with ctx at the latest, and is false where one is under way or cannot be.
func (d *Doctor) Start(ctx context.Context, who string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.Able() || !d.state.Since.IsZero() {
		return false
	}
	d.state.Since, d.state.Who = d.Now(), who
	go d.run(ctx)
	return true
}

func (d *Doctor) run(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("it did not end within %s", longest))
	defer cancel()
	report, err := d.ask(ctx)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	s := &d.state
	s.Began, s.Took, s.Since, s.Problem = s.Since, d.Now().Sub(s.Since), time.Time{}, ""
	if s.Report = report; err != nil {
		s.Problem = err.Error()
	}
}

// ask runs the program. It exits with 0 where it found nothing and with 1 where it did; then its answer is a report.
func (d *Doctor) ask(ctx context.Context) (*Report, error) {
	var output, complaint bytes.Buffer
	run := exec.CommandContext(ctx, found(d.Command[0]), append(d.Command[1:len(d.Command):len(d.Command)], "doctor",
		"--json")...)
	run.Stdout, run.Stderr = &limited{&output}, &limited{&complaint}
	run.WaitDelay = 5 * time.Second
	err := run.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	exited := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &exited) || exited.ExitCode() != 1) {
		return nil, fmt.Errorf("%s: %w: %s", d.Command[0], err, firstLine(complaint.String()))
	}
	var r Report
	if err := json.Unmarshal(output.Bytes(), &r); err != nil {
		return nil, fmt.Errorf("%s answers what is no report: %w: %s", d.Command[0], err, firstLine(complaint.String()))
	}
	return &r, nil
}

// found is a program beside this one, if there is one of the name.
func found(name string) string {
	self, err := os.Executable()
	if err != nil || strings.ContainsRune(name, filepath.Separator) {
		return name
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(beside); err != nil {
		return name
	}
	return beside
}

// limited keeps the first bytes of what is written.
type limited struct{ *bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if room := most - l.Len(); room < len(p) {
		_, _ = l.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
