package ttl

import (
	"sync"
	"testing"
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
