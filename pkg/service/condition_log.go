package service

import (
	"regexp"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// repeatAfter is how long a reason is not logged again that was logged before, whatever its figures: a condition that
// goes up and down, or counts how far it is, must not fill the log.
const repeatAfter = 30 * time.Second

// mostReasons bounds how many reasons of a condition are remembered.
const mostReasons = 64

var figures = regexp.MustCompile(`[0-9]+`)

// conditionLog writes the changes of a condition. A reason that is new is logged at once. In the end the last line is
// what holds: what was held back is logged when its time has come, if it is still so.
type conditionLog struct {
	log  zerolog.Logger
	name string

	mu      sync.Mutex
	now     string // the reason at present, empty while the condition holds
	logged  string // what was logged last; begins as "starting", which needs no line
	at      map[string]time.Time
	waiting bool // something is held back
}

// change takes the reason at present.
func (l *conditionLog) change(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = reason
	l.write()
}

// write logs the present reason unless it is known or has to wait. The caller holds the lock.
func (l *conditionLog) write() {
	if l.now == l.logged {
		return
	}
	text := figures.ReplaceAllString(l.now, "0")
	if wait := repeatAfter - time.Since(l.at[text]); wait > 0 && l.now != "" {
		l.hold(wait)
		return
	}
	if len(l.at) >= mostReasons || l.at == nil {
		l.at = map[string]time.Time{}
	}
	l.at[text] = time.Now()
	l.logged = l.now
	if l.now == "" {
		l.log.Info().Str("condition", l.name).Msg("condition holds")
		return
	}
	l.log.Warn().Str("condition", l.name).Str("reason", l.now).Msg("condition fails")
}

// hold looks again after a while. The caller holds the lock.
func (l *conditionLog) hold(wait time.Duration) {
	if l.waiting {
		return
	}
	l.waiting = true
	time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = false
		l.write()
	})
}
