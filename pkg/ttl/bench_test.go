package ttl

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// The benchmarks work on a million entries and report entries per second and heap bytes per entry, beside one
// time.AfterFunc per entry.
const million = 1_000_000

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// spread scatters expiries over a second, as they come in life.
func spread(key uint64) time.Duration {
	return time.Duration(key * 0x9E3779B97F4A7C15 % uint64(time.Second))
}

func perSecond(b *testing.B, name string, elapsed time.Duration) {
	b.ReportMetric(float64(million)*float64(b.N)/elapsed.Seconds(), name+"/s")
}

func BenchmarkQueue(b *testing.B) {
	var insert, expire, retry time.Duration
	for range b.N {
		now, fails := time.Duration(0), true
		q := New(Options[uint64]{Config: DefaultConfig(), Clock: func() time.Duration { return now },
			Callback: func(x Try[uint64]) error {
				if fails {
					return errBroken
				}
				x.Remove()
				return nil
			}})
		q.Lead(true)
		before := heap()
		begun := time.Now()
		for key := range uint64(million) {
			q.Set(key, spread(key))
		}
		insert += time.Since(begun)
		b.ReportMetric(float64(heap()-before)/million, "B/entry")
		drain := func() time.Duration {
			begun := time.Now()
			for q.Turn() == 0 {
			}
			return time.Since(begun)
		}
		now = time.Second
		expire += drain()
		now, fails = 3*time.Second, false
		retry += drain()
		if s := q.Stats(); s != (Stats{}) {
			b.Fatalf("left %+v", s)
		}
	}
	perSecond(b, "insert", insert)
	perSecond(b, "expire", expire)
	perSecond(b, "retry", retry)
}

// The other way: a timer of the runtime for each entry, and a map to find it by its key. It has no batches, no order
// among equals, and no role.
func BenchmarkAfterFunc(b *testing.B) {
	var insert, expire time.Duration
	for range b.N {
		timers := map[uint64]*time.Timer{}
		var all sync.WaitGroup
		all.Add(million)
		before := heap()
		begun := time.Now()
		for key := range uint64(million) {
			timers[key] = time.AfterFunc(time.Hour+spread(key), all.Done)
		}
		insert += time.Since(begun)
		b.ReportMetric(float64(heap()-before)/million, "B/entry")
		begun = time.Now()
		for key := range uint64(million) {
			timers[key].Reset(0)
		}
		all.Wait()
		expire += time.Since(begun)
	}
	perSecond(b, "insert", insert)
	perSecond(b, "expire", expire)
}
