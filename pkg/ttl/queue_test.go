package ttl

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// stage is a queue of texts on a clock that only moves when told, with a callback that a test may replace.
type fixture struct {
	*Queue[string]
	now  time.Duration
	ran  []string
	last map[string]Try[string]
	do   func(Try[string]) error
	dead []string
}

func newFixture(cfg Config) *fixture {
	s := &fixture{last: map[string]Try[string]{}, do: func(Try[string]) error { return nil }}
	s.Queue = New(Options[string]{
		Config: cfg, Clock: func() time.Duration { return s.now },
		Callback: func(t Try[string]) error {
			s.ran = append(s.ran, t.Key())
			s.last[t.Key()] = t
			return s.do(t)
		},
		DeadLetter: func(key string, failures int, err error) {
			s.dead = append(s.dead, fmt.Sprintf("%s %d %v", key, failures, err))
		},
	})
	s.Lead(true)
	return s
}

func (s *fixture) took() []string {
	ran := s.ran
	s.ran = nil
	return ran
}

func (s *fixture) at(t *testing.T, now time.Duration, sleep time.Duration, want ...string) {
	t.Helper()
	s.now = now
	got := s.Turn()
	if ran := s.took(); !slices.Equal(ran, want) || got != sleep {
		t.Errorf("at %s ran %v and sleeps %s, want %v and %s", now, ran, got, want, sleep)
	}
}

// TTL-2, TTL-3: error, panic and a later report are the same; the next try comes the retry delay after the failure.
func TestFailuresAreTriedAgain(t *testing.T) {
	for name, fail := range map[string]struct {
		in    func(Try[string]) error
		after func(Try[string])
	}{
		"error": {in: func(Try[string]) error { return errBroken }},
		"panic": {in: func(Try[string]) error { panic(errBroken) }},
		"said":  {in: func(x Try[string]) error { x.Retry(errBroken); return nil }},
		"twice": {in: func(x Try[string]) error { x.Retry(errBroken); return errBroken }},
		"later": {in: func(Try[string]) error { return nil }, after: func(x Try[string]) { x.Retry(errBroken) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(DefaultConfig())
			s.do = fail.in
			s.Set("a", 5)
			s.now = 10
			s.Turn()
			if fail.after != nil {
				fail.after(s.last["a"])
			}
			s.took()
			if got := s.Stats(); got.Failed != 1 || got.Pending != 1 {
				t.Fatalf("after a failure: %+v", got)
			}
			s.do = func(x Try[string]) error { x.Remove(); return nil }
			s.at(t, 9+time.Second, 1)
			s.at(t, 10+time.Second, time.Second, "a")
			if got := s.Stats(); got != (Stats{}) {
				t.Errorf("at the end: %+v", got)
			}
		})
	}
}

// TTL-2: whoever reports on what is no more is not heard.
func TestStaleReportsAreIgnored(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"replaced":              func(s *fixture) { s.Set("a", 1000) },
		"removed":               func(s *fixture) { s.Remove("a") },
		"removed and set again": func(s *fixture) { s.Remove("a"); s.Set("a", 1000) },
		"tried again": func(s *fixture) {
			s.Lead(false)
			s.Lead(true)
			s.Turn()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(DefaultConfig())
			s.Set("a", 5)
			s.at(t, 5, time.Second, "a")
			old := s.last["a"]
			change(s)
			before := s.Stats()
			if old.Remove() || old.Retry(errBroken) {
				t.Error("a stale report was accepted")
			}
			if got := s.Stats(); got != before {
				t.Errorf("a stale report changed %+v into %+v", before, got)
			}
		})
	}
}

// TTL-7: a stop waits for the callback that runs, starts nothing any more, and leaves nothing behind.
func TestStopWaitsForTheCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		q := New(Options[int]{Config: DefaultConfig(), Callback: func(x Try[int]) error {
			runs++
			time.Sleep(time.Minute)
			return errBroken
		}})
		q.Lead(true)
		q.Set(1, 0)
		q.Set(2, 0)
		var loop sync.WaitGroup
		loop.Go(func() { q.Run(t.Context()) })
		synctest.Wait()
		begun := time.Now()
		q.Stop()
		if took := time.Since(begun); took != time.Minute || runs != 1 {
			t.Errorf("stopped after %s and %d runs, want the running one to end and no other", took, runs)
		}
		q.Set(3, 0)
		time.Sleep(time.Hour)
		if runs != 1 || q.Turn() != DefaultConfig().IdleDelay {
			t.Errorf("%d runs after the stop", runs)
		}
	})
}

// TTL-5: the loop sleeps until something is due, and a nearer entry wakes it.
func TestLoopSleepsAndWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ran := map[string]time.Duration{}
		tries := 0
		q := New(Options[string]{Config: DefaultConfig(), Callback: func(x Try[string]) error {
			ran[x.Key()] = time.Since(begun)
			if x.Key() == "near" {
				if tries++; tries < 3 {
					return errBroken
				}
			}
			x.Remove()
			return nil
		}})
		q.Lead(true)
		q.Set("far", time.Hour)
		var loop sync.WaitGroup
		loop.Go(func() { q.Run(t.Context()) })
		time.Sleep(10 * time.Minute)
		q.Set("near", 11*time.Minute)
		time.Sleep(2 * time.Hour)
		if ran["far"] != time.Hour || ran["near"] != 11*time.Minute+2*time.Second || tries != 3 {
			t.Errorf("ran %v, %d tries", ran, tries)
		}
		q.Stop()
	})
}

// TTL-8: entries may be replaced and removed by their own callback and by others meanwhile.
func TestChangesWhileTheCallbackRuns(t *testing.T) {
	s := newFixture(DefaultConfig())
	s.do = func(x Try[string]) error {
		switch x.Key() {
		case "replaced":
			s.Set("replaced", 50)
			return errBroken // no failure of the new entry
		case "removed":
			s.Remove("removed")
			return errBroken
		case "another":
			s.Remove("next")
		}
		return nil
	}
	for i, key := range []string{"replaced", "removed", "another", "next"} {
		s.Set(key, time.Duration(i))
	}
	s.at(t, 10, 40, "replaced", "removed", "another")
	if got := s.Stats(); got.Waiting != 1 || got.Pending != 1 || got.Failed != 0 {
		t.Errorf("left %+v", got)
	}
}
