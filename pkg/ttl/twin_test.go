package ttl

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// twin is the queue as one would write it without a thought for speed: one list, looked through every time.
type twin struct {
	cfg     Config
	leads   bool
	entries []twinEntry
	trials  int // numbers entries and tries, so that reports can name them
}

type twinEntry struct {
	key            string
	expiry         time.Duration
	pending, fails bool // in the pending queue; failed and waiting for another try
	trial          int  // of the open try, 0 for none
	failures       int
	due            time.Duration
}

func (w *twin) order() {
	slices.SortFunc(w.entries, func(a, b twinEntry) int {
		return cmp.Or(cmp.Compare(a.expiry, b.expiry), cmp.Compare(a.key, b.key))
	})
}

func (w *twin) remove(key string) {
	w.entries = slices.DeleteFunc(w.entries, func(e twinEntry) bool { return e.key == key })
}

func (w *twin) set(key string, expiry time.Duration) {
	w.remove(key)
	w.entries = append(w.entries, twinEntry{key: key, expiry: expiry})
	w.order()
}

func (w *twin) lead(leads bool) {
	if w.leads == leads {
		return
	}
	w.leads = leads
	for i := range w.entries {
		w.entries[i].pending, w.entries[i].fails = false, false
	}
}

// report finds the entry of an open try.
func (w *twin) report(trial int, now time.Duration, failed bool) bool {
	i := slices.IndexFunc(w.entries, func(e twinEntry) bool { return e.trial == trial })
	if i < 0 {
		return false
	}
	e := &w.entries[i]
	if !failed {
		w.remove(e.key)
		return true
	}
	e.trial, e.failures, e.due, e.fails = 0, e.failures+1, now, e.pending
	if w.cfg.MaxAttempts == 0 || e.failures < w.cfg.MaxAttempts {
		wait := w.cfg.RetryDelay
		for range e.failures - 1 {
			wait = max(w.cfg.RetryDelay, min(2*wait, w.cfg.MaxRetryDelay))
		}
		e.due += wait
	}
	return true
}

// turn returns what runs, as (key, trial) with trial 0 for a burial; fails tells which tries fail at once.
func (w *twin) turn(now time.Duration, fails func(string) bool) (ran []run, sleep time.Duration) {
	if !w.leads {
		return nil, w.cfg.IdleDelay
	}
	late := func(e twinEntry) bool { return e.fails && e.due <= now }
	yields := false
	for n := 0; slices.ContainsFunc(w.entries, late); n++ {
		if n == 10 {
			yields = true
			break
		}
		first := -1
		for i, e := range w.entries {
			if late(e) && (first < 0 || e.due < w.entries[first].due) {
				first = i
			}
		}
		w.entries[first].pending, w.entries[first].fails = false, false
	}
	expired := func(e twinEntry) bool { return !e.pending && e.expiry <= now }
	for n := 0; slices.ContainsFunc(w.entries, expired); n++ {
		if n == 50 {
			yields = true
			break
		}
		e := &w.entries[slices.IndexFunc(w.entries, expired)]
		if w.cfg.MaxAttempts > 0 && e.failures >= w.cfg.MaxAttempts {
			ran = append(ran, run{e.key, 0})
			w.remove(e.key)
			continue
		}
		w.trials++
		e.pending, e.trial = true, w.trials
		ran = append(ran, run{e.key, w.trials})
		if fails(e.key) {
			w.report(w.trials, now, true)
		}
	}
	if yields {
		return ran, 0
	}
	sleep = -1
	for _, e := range w.entries {
		next := e.expiry
		if e.fails {
			next = e.due
		} else if e.pending {
			continue
		}
		if wait := max(0, next-now); sleep < 0 || wait < sleep {
			sleep = wait
		}
	}
	if sleep < 0 {
		sleep = w.cfg.IdleDelay
	}
	return ran, sleep
}

func (w *twin) stats(now time.Duration) (s Stats) {
	for _, e := range w.entries {
		switch {
		case !e.pending:
			s.Waiting++
		default:
			if s.Pending++; s.Pending == 1 {
				s.OldestPending = now - e.expiry
			}
			if e.fails {
				s.Failed++
			}
		}
	}
	return s
}

type run struct {
	key   string
	trial int
}

// TTL-1, TTL-2, TTL-3, TTL-4, TTL-5, TTL-6, TTL-8, TTL-10: whatever is done to it,
// the queue runs what its dumb twin runs, in the same order, and sleeps as long.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			RetryDelay: 10, IdleDelay: 1000,
			MaxRetryDelay: time.Duration(rapid.SampledFrom([]int{0, 10, 35}).Draw(t, "cap")),
			MaxAttempts:   rapid.IntRange(0, 3).Draw(t, "attempts"),
		}
		w := &twin{cfg: cfg}
		var now time.Duration
		var ran []run
		fails := map[string]bool{}
		tries := map[int]Try[string]{}
		q := New(Options[string]{
			Config: cfg, Clock: func() time.Duration { return now },
			Callback: func(x Try[string]) error {
				tries[len(tries)+1] = x
				ran = append(ran, run{x.Key(), len(tries)})
				if fails[x.Key()] {
					return errBroken
				}
				return nil
			},
			DeadLetter: func(key string, _ int, _ error) { ran = append(ran, run{key, 0}) },
		})
		keys := rapid.StringMatching("[a-e]?[a-p]")
		at := func(label string) time.Duration { return now + time.Duration(rapid.IntRange(-20, 40).Draw(t, label)) }
		check := func() {
			if got, want := q.Stats(), w.stats(now); got != want {
				t.Fatalf("figures %+v, want %+v", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"set": func(t *rapid.T) {
				key, expiry := keys.Draw(t, "key"), at("expiry")
				q.Set(key, expiry)
				w.set(key, expiry)
			},
			"set many": func(t *rapid.T) {
				expiry := at("expiry")
				for range rapid.IntRange(1, 90).Draw(t, "how many") {
					key := keys.Draw(t, "key")
					q.Set(key, expiry)
					w.set(key, expiry)
				}
			},
			"remove": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				known := slices.ContainsFunc(w.entries, func(e twinEntry) bool { return e.key == key })
				w.remove(key)
				if q.Remove(key) != known {
					t.Fatalf("removing %s: known %t", key, known)
				}
			},
			"lead":     func(t *rapid.T) { leads := rapid.Bool().Draw(t, "leads"); q.Lead(leads); w.lead(leads) },
			"lead on":  func(*rapid.T) { q.Lead(true); w.lead(true) },
			"time":     func(t *rapid.T) { now += time.Duration(rapid.IntRange(0, 15).Draw(t, "passes")) },
			"troubles": func(t *rapid.T) { key := keys.Draw(t, "key"); fails[key] = !fails[key] },
			"report": func(t *rapid.T) {
				if len(tries) == 0 {
					return
				}
				trial, failed := rapid.IntRange(1, len(tries)).Draw(t, "try"), rapid.Bool().Draw(t, "failed")
				want := w.report(trial, now, failed)
				got := false
				if failed {
					got = tries[trial].Retry(errBroken)
				} else {
					got = tries[trial].Remove()
				}
				if got != want {
					t.Fatalf("a report on try %d was heard: %t, want %t", trial, got, want)
				}
			},
			"turn": func(t *rapid.T) {
				ran = nil
				sleep := q.Turn()
				wantRan, wantSleep := w.turn(now, func(key string) bool { return fails[key] })
				if !slices.Equal(ran, wantRan) || sleep != wantSleep {
					t.Fatalf("ran %v and sleeps %d, want %v and %d", ran, sleep, wantRan, wantSleep)
				}
			},
		})
	})
}
