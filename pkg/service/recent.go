package service

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// What is kept of a process's log for whoever reports a fault: the last minutes, and never more than so many bytes.
const (
	recentAge   = 10 * time.Minute
	recentBytes = 2 << 20
)

// recent are the newest lines of a log, as JSON. It is an io.Writer of whole lines, safe for concurrent use.
type recent struct {
	started bytes.Buffer // what runs, and the configuration in force; written before anything else
	secrets *strings.Replacer

	mu    sync.Mutex
	lines []logLine // oldest first
	bytes int
}

type logLine struct {
	at   time.Time
	text string
}

// Write implements io.Writer.
func (r *recent) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.lines, r.bytes = append(r.lines, logLine{now, string(line)}), r.bytes+len(line)
	r.forget(now)
	return len(line), nil
}

// forget drops what is too old or too much. The caller holds the lock.
func (r *recent) forget(now time.Time) {
	gone := 0
	for ; gone < len(r.lines) && (r.bytes > recentBytes || now.Sub(r.lines[gone].at) > recentAge); gone++ {
		r.bytes -= len(r.lines[gone].text)
		r.lines[gone].text = "" // the array behind the slice lives on for a while
	}
	r.lines = r.lines[gone:]
}

// ServeHTTP writes the line of the start and those of the last minutes, without this process's secrets: an error's text
// may hold one.
func (r *recent) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	r.forget(time.Now())
	lines := slices.Clone(r.lines)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = r.secrets.WriteString(w, r.started.String()) // The client may have gone; nothing is lost with it.
	for _, l := range lines {
		_, _ = r.secrets.WriteString(w, l.text)
	}
}
