package service

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// timeLayout is RFC 3339 in UTC with milliseconds, so that the lines of several keepers can be merged.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// NewLog is the logger of a process that has no shell around it: as Main's, but it writes to any writer.
func NewLog(name string, s LogSettings, to io.Writer) zerolog.Logger {
	log, _ := newLog(name, s, to, io.Discard)
	return log
}

// newLog returns the logger of a process and whether it writes for people. Each line also goes to another writer, as
// JSON.
func newLog(name string, s LogSettings, stderr, also io.Writer) (log zerolog.Logger, console bool) {
	terminal := isTerminal(stderr)
	console = s.Format == "console" || s.Format != "json" && terminal
	out := stderr
	if console {
		out = zerolog.ConsoleWriter{Out: stderr, NoColor: !terminal, TimeFormat: "15:04:05.000", TimeLocation: time.UTC,
			FieldsExclude: []string{"service"}}
	}
	out = zerolog.MultiLevelWriter(out, also)
	return zerolog.New(out).Level(s.level()).Hook(stamp{}).With().Str("service", name).Logger(), console
}

// stamp writes the time of an event. It is a hook because zerolog's own timestamp can only be given a format for the
// whole program.
type stamp struct{}

func (stamp) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format(timeLayout))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
