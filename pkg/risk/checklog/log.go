// Package checklog keeps the verdicts of the checks that an attempt passes before it gets its nonce: the freshness
// gate, whose turn it is, the state, the choice of price reports, and the simulated call. It is for people who ask for
// the history of one job.
//
// It never delays an attempt: [Log.Note] takes a lock and does no I/O, and entries are written in batches, once a
// second. Guaranteed: a verdict that differs from the last one of the same check in figures alone is not written again.
// Not guaranteed: completeness. Entries are lost, and counted, while the database is away for long; those of a
// process's last second may be lost. Of verdicts that alternate only the first are kept, and of a long answer only its
// beginning.
package checklog

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rs/zerolog"
)

// The checks, in the order in which they are made.
const (
	Gate    = "gate"    // does this keeper see what happens?
	Turn    = "turn"    // is it this keeper's?
	Pending = "pending" // is it still to be done, by our own state?
	Words   = "words"   // were its markets' words compared with the chain?
	Price   = "price"   // do fresh reports fit it?
	Call    = "call"    // would the venue do it?
)

// Entry is the verdict of one check on an attempt.
type Entry struct {
	Intent  int64 // the attempt, as the store numbers it
	At      time.Time
	Check   string // one of the above
	Verdict string // proceed, waiting, deferred, closed, unknown, or the outcome by which it ended
	Detail  string // the reason, or what the verdict rests on
	By      string // who gave it: endpoints, price sources, or this keeper itself
	Block   uint64 // the verdict is as of this block; 0 where that is not known
}

// Store keeps entries.
type Store interface {
	Save(ctx context.Context, entries []Entry) error
	// Prune drops what is older than a time.
	Prune(ctx context.Context, before time.Time) error
}

// Bounds of what is held in memory, and for how long entries are kept.
const (
	mostWaiting      = 16384            // entries that are not written yet
	mostOfAttempt    = 128              // entries of one attempt: verdicts that alternate add nothing
	maxDetail        = 1000             // bytes of a detail: an endpoint may answer with megabytes
	attemptForgotten = 10 * time.Minute // after the last verdict on it
	kept             = 14 * 24 * time.Hour
	pruneEvery       = time.Hour
	flushEvery       = time.Second
)

// Log takes entries. A nil one takes none. It is safe for concurrent use.
type Log struct {
	store Store
	clock func() time.Time
	log   zerolog.Logger

	mu       sync.Mutex
	waiting  []Entry
	attempts map[int64]*attempt
}

// attempt is the last verdict of each check on one attempt.
type attempt struct {
	last    map[string]string // by check
	entries int
	at      time.Time
}

// New makes a log that writes while [Log.Run] runs.
func New(store Store, clock func() time.Time, log zerolog.Logger) *Log {
	return &Log{store: store, clock: clock, log: log, attempts: map[int64]*attempt{}}
}

// Note adds an entry, unless it repeats the last one of its check. It sets the entry's time to now.
func (l *Log) Note(e Entry) {
	if l == nil {
		return
	}
	e.At = l.clock()
	if len(e.Detail) > maxDetail {
		e.Detail = strings.ToValidUTF8(e.Detail[:maxDetail], "") + "…"
	}
	gist := e.Verdict + " " + gistOf(e.Detail)
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.attempts[e.Intent]
	if a == nil {
		a = &attempt{last: map[string]string{}}
		l.attempts[e.Intent] = a
	}
	a.at = e.At
	if a.last[e.Check] == gist {
		return
	}
	a.last[e.Check] = gist
	if a.entries++; a.entries > mostOfAttempt {
		return
	}
	if len(l.waiting) < mostWaiting {
		l.waiting = append(l.waiting, e)
	}
}

// gistOf is a text without its figures, which change from one look to the next.
func gistOf(detail string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, detail)
}

// Run writes what is noted until ctx ends, and then what is left.
func (l *Log) Run(ctx context.Context) error {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	var pruned time.Time
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushEvery)
			defer cancel()
			l.flush(last)
			return context.Cause(ctx)
		}
		l.flush(ctx)
		if now := l.clock(); now.Sub(pruned) > pruneEvery {
			pruned = now
			if err := l.store.Prune(ctx, now.Add(-kept)); err != nil && ctx.Err() == nil {
				l.log.Warn().Err(err).Msg("old verdicts of checks are not dropped yet")
			}
		}
	}
}

// flush writes what waits. What cannot be written waits on, while there is room.
func (l *Log) flush(ctx context.Context) {
	entries := l.take()
	if len(entries) == 0 {
		return
	}
	if err := l.store.Save(ctx, entries); err != nil {
		l.log.Debug().Err(err).Int("entries", len(entries)).Msg("verdicts of checks are not written yet")
		l.giveBack(entries)
	}
}

func (l *Log) take() (entries []Entry) {
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, a := range l.attempts {
		if now.Sub(a.at) > attemptForgotten {
			delete(l.attempts, id)
		}
	}
	entries, l.waiting = l.waiting, nil
	return entries
}

func (l *Log) giveBack(entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := max(0, mostWaiting-len(l.waiting))
	entries = entries[max(0, len(entries)-room):]
	l.waiting = append(entries, l.waiting...)
}

// Compare orders entries by time, and those of one moment by the order in which checks are made.
func Compare(a, b Entry) int {
	order := map[string]int{Gate: 1, Turn: 2, Pending: 3, Words: 4, Price: 5, Call: 6}
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(order[a.Check], order[b.Check]))
}
