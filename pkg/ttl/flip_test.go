package ttl

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// flipping is a queue whose callbacks hand their work to others, with a ledger of who did what.
type flipping struct {
	mu      sync.Mutex
	running map[int]bool
	tries   map[int]int
	done    map[int]int
	overlap bool
}

func (f *flipping) begin(key int) (try int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.overlap = f.overlap || f.running[key] || f.done[key] > 0
	f.running[key] = true
	f.tries[key]++
	return f.tries[key]
}

func (f *flipping) end(key int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[key] = false
}

func (f *flipping) finish(x Try[int]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x.Remove() {
		f.done[x.Key()]++
	}
}

func (f *flipping) finished() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.done)
}

// TTL-6: the role flips in the middle of a batch of fifty expiries, again and again: nothing is lost, nothing is run
// that was done, no entry runs beside itself, and what was pending returns.
func TestRoleFlipsDuringABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const entries = 50
		f := &flipping{running: map[int]bool{}, tries: map[int]int{}, done: map[int]int{}}
		var later sync.WaitGroup
		q := New(Options[int]{Config: DefaultConfig(), Callback: func(x Try[int]) error {
			try := f.begin(x.Key())
			time.Sleep(time.Millisecond) // the batch takes 50 ms, within which the role flips
			f.end(x.Key())
			switch {
			case x.Key()%5 == 0 && try == 1:
				return errBroken
			case x.Key()%5 == 1 && try == 1:
				panic("no")
			case x.Key()%5 == 2 && try == 1:
				return nil // never reported: only a change of role brings it back
			case x.Key()%5 == 3:
				later.Go(func() {
					time.Sleep(20 * time.Millisecond)
					f.finish(x)
				})
				return nil
			}
			f.finish(x)
			return nil
		}})
		for key := range entries {
			q.Set(key, 0)
		}
		var loop sync.WaitGroup
		loop.Go(func() { q.Run(t.Context()) })
		for flip := range 8 {
			q.Lead(flip%2 == 0)
			time.Sleep(11 * time.Millisecond)
			synctest.Wait()
			if s, done := q.Stats(), f.finished(); flip%2 == 1 && s.Pending > 0 || s.Waiting+s.Pending+done != entries {
				t.Errorf("after flip %d: %+v, %d done", flip, s, done)
			}
		}
		q.Lead(true)
		time.Sleep(time.Minute)
		if s := q.Stats(); s.Pending > 0 {
			q.Lead(false)
			q.Lead(true)
			time.Sleep(time.Minute)
		}
		q.Stop()
		loop.Wait()
		later.Wait()
		for key := range entries {
			if f.done[key] != 1 {
				t.Errorf("entry %d was done %d times in %d tries", key, f.done[key], f.tries[key])
			}
		}
		if f.overlap {
			t.Error("an entry ran beside itself, or after it was done")
		}
		if s := q.Stats(); s != (Stats{}) {
			t.Errorf("left %+v", s)
		}
	})
}

// TTL-7, TTL-8: everything at once, for the race detector.
func TestManyHands(t *testing.T) {
	f := &flipping{running: map[int]bool{}, tries: map[int]int{}, done: map[int]int{}}
	q := New(Options[int]{Config: Config{RetryDelay: time.Millisecond, IdleDelay: time.Millisecond},
		Callback: func(x Try[int]) error {
			try := f.begin(x.Key())
			f.end(x.Key())
			if try%3 == 1 {
				return errBroken
			}
			f.finish(x)
			return nil
		}})
	var loop, hands sync.WaitGroup
	loop.Go(func() { q.Run(t.Context()) })
	const keys = 300
	for hand := range 3 {
		hands.Go(func() {
			for key := hand; key < keys; key += 3 {
				q.Set(key, 0)
				q.Set(key+keys, time.Hour)
				q.Lead(key%7 != 0)
				q.Remove(key + keys)
				q.Stats()
			}
		})
	}
	hands.Wait()
	q.Lead(true)
	guard := time.NewTimer(time.Minute)
	defer guard.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s := q.Stats(); s.Waiting+s.Pending > 0; s = q.Stats() {
		select {
		case <-tick.C:
		case <-guard.C:
			t.Fatalf("still there: %+v", s)
		}
	}
	q.Stop()
	loop.Wait()
	if len(f.done) != keys || f.overlap {
		t.Errorf("%d of %d done, beside itself: %t", len(f.done), keys, f.overlap)
	}
}
