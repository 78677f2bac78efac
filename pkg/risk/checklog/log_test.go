package checklog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/risk/checklog"
)

// memory is a store that may be away.
type memory struct {
	mu      sync.Mutex
	away    bool
	entries []checklog.Entry
	pruned  []time.Time
}

func (m *memory) Save(_ context.Context, entries []checklog.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errors.New("away")
	}
	m.entries = append(m.entries, entries...)
	return nil
}

func (m *memory) Prune(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = append(m.pruned, before)
	return nil
}

// told is what stands in the store, in short.
func (m *memory) told() (lines []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		lines = append(lines, fmt.Sprintf("%d %s %s: %s", e.Intent, e.Check, e.Verdict, e.Detail))
	}
	return lines
}

// running plays with a log in virtual time.
func running(t *testing.T, play func(l *checklog.Log, store *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		l := checklog.New(store, time.Now, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		play(l, store)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
}

func after(d time.Duration) { <-time.After(d) }

// What a check says again is written once, however its figures change; what it says anew is written.
func TestOnlyWhatChangesIsWritten(t *testing.T) {
	running(t, func(l *checklog.Log, store *memory) {
		note := func(intent int64, check, verdict, detail string) {
			l.Note(checklog.Entry{Intent: intent, Check: check, Verdict: verdict, Detail: detail})
		}
		note(1, checklog.Price, "waiting", "the report is of second 41")
		note(1, checklog.Price, "waiting", "the report is of second 42")
		note(1, checklog.Call, "waiting", "the report is of second 42")
		note(2, checklog.Price, "waiting", "the report is of second 43")
		note(1, checklog.Price, "proceed", "the report is of second 44")
		if got := store.told(); len(got) != 0 {
			t.Errorf("Note has written: %v", got)
		}
		after(2 * time.Second)
		want := []string{"1 price waiting: the report is of second 41", "1 call waiting: the report is of second 42",
			"2 price waiting: the report is of second 43", "1 price proceed: the report is of second 44"}
		if got := store.told(); !slices.Equal(got, want) {
			t.Errorf("written: %q, want %q", got, want)
		}
	})
}

// An attempt whose verdict goes to and fro at every head does not fill the table.
func TestToAndFroIsBounded(t *testing.T) {
	running(t, func(l *checklog.Log, store *memory) {
		for n := range 1000 {
			l.Note(checklog.Entry{Intent: 1, Check: checklog.Call, Verdict: []string{"proceed", "waiting"}[n%2]})
		}
		l.Note(checklog.Entry{Intent: 2, Check: checklog.Call, Verdict: "proceed"})
		after(2 * time.Second)
		if got := len(store.told()); got != 129 {
			t.Errorf("%d entries, want 128 of the first attempt and 1 of the second", got)
		}
	})
}

// While the store is away entries wait, up to a bound.
func TestStoreThatIsAway(t *testing.T) {
	running(t, func(l *checklog.Log, store *memory) {
		store.away = true
		for n := range 17000 {
			l.Note(checklog.Entry{Intent: int64(n), Check: checklog.Pending, Verdict: "proceed"})
		}
		after(2 * time.Second)
		if n := len(store.told()); n != 0 {
			t.Errorf("%d written", n)
		}
		store.mu.Lock()
		store.away = false
		store.mu.Unlock()
		after(2 * time.Second)
		if got := len(store.told()); got != 16384 {
			t.Errorf("%d written afterwards", got)
		}
	})
}

// What was noted last is written when the process ends in order, and old entries are dropped from time to time.
func TestLastEntriesAndOldOnes(t *testing.T) {
	store := &memory{}
	synctest.Test(t, func(t *testing.T) {
		l := checklog.New(store, time.Now, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		after(90 * time.Minute)
		l.Note(checklog.Entry{Intent: 7, Check: checklog.Gate, Verdict: "closed"})
		cancel()
		<-ended
		if got := len(store.pruned); got != 2 {
			t.Errorf("pruned %d times within 90 minutes", got)
		}
		if ago := time.Since(store.pruned[1]); ago < 13*24*time.Hour {
			t.Errorf("drops what is %s old", ago)
		}
	})
	if got := store.told(); !slices.Equal(got, []string{"7 gate closed: "}) {
		t.Errorf("written: %q", got)
	}
}
