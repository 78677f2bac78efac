package planner

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service"
	"perpkeeper/test/largestate"
)

// many is how many positions the test of size has: 20 000, 2.5 million in the long form, or POSITIONS.
func many(t *testing.T) (positions int, long bool) {
	long = os.Getenv("KEEPER_LONG") != ""
	positions = 20_000
	if long {
		positions = mostPositions
	}
	if text := os.Getenv("POSITIONS"); text != "" {
		var err error
		if positions, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return positions, long
}

// mostPositions is how many a planner is meant for: four have ten million.
const mostPositions = 2_500_000

// longestTick keeps the longest of the ticks, and the most that the plan's thread has computed from one tick to the
// next: on a busy machine only that says what the plan itself stops for.
type longestTick struct {
	prometheus.Histogram
	mu         sync.Mutex
	count      int
	most       float64
	used, busy time.Duration
}

func (l *longestTick) Observe(seconds float64) {
	used := processorTime(syscall.RUSAGE_THREAD)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.most = l.count+1, max(l.most, seconds)
	l.busy, l.used = max(l.busy, used-l.used), used
}

func (l *longestTick) seen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// take returns the longest since the last call.
func (l *longestTick) take() (count int, most, busy time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count, most, busy = l.count, time.Duration(l.most*float64(time.Second)), l.busy
	l.count, l.most, l.busy = 0, 0, 0
	return count, most, busy
}

// heapPeak follows the heap in use until the returned function is called.
func heapPeak() (stop func() uint64) {
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); return <-peak }
}

// A planner of millions of positions is ready within half a minute, and a rebalance stops no tick: what comes is loaded
// beside, what goes is let go, and what stays is planned meanwhile. The long form demands it, and is for a quiet
// machine: what others do is seconds of a tick.
func TestManyPositions(t *testing.T) {
	positions, long := many(t)
	if long {
		collectOften()
	}
	db, _ := largestate.Open(t, positions)
	p := newPlanner(DefaultConfig(), zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), db)
	ticks := &longestTick{Histogram: p.metrics.ticks}
	p.metrics.ticks = ticks
	p.stateReady, p.jobsReady = new(service.Condition), new(service.Condition)
	p.publish = func(context.Context, []job.Job) error { return nil }
	d := fixture{quotes: p.quotes}
	for i := range largestate.Markets {
		d.report(largestate.Token(i), largestate.Price(1000), nowMs)
	}
	d.report(largestate.Stable, largestate.StablePrice, nowMs)

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		runtime.LockOSThread() // for its processor time; it is never unlocked, and ends with the plan
		_ = p.plan(ctx, make(chan struct{}))
	})
	running.Go(func() {
		for ms := uint64(nowMs); ctx.Err() == nil; ms++ {
			d.report(largestate.Token(int(ms%largestate.Markets)), largestate.Price(1000+ms%3), ms)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	holds := func(want int) time.Duration {
		began := time.Now()
		open := p.metrics.open.WithLabelValues("positions")
		for testutil.ToFloat64(open) != float64(want) || ticks.seen() < 50 {
			if time.Since(began) > 10*time.Minute {
				t.Fatalf("no %d positions after %s", want, time.Since(began))
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return time.Since(began)
	}

	// Of more positions than a planner is meant for it gets its share.
	share := min(largestate.Parts, largestate.Parts*mostPositions/positions)
	each := positions / largestate.Parts
	mine := make([]int, share)
	for i := range mine {
		mine[i] = i
	}
	peak, before := heapPeak(), processorTime(syscall.RUSAGE_SELF)
	p.shards.assign(mine)
	took, heap := holds(each*share), peak()
	count, most, busy := ticks.take()
	t.Logf("%d of %d positions: loaded in %s, %s of the processor, heap in use at most %d MB, longest of %d ticks %s, "+
		"computed between two at most %s", each*share, positions, took, processorTime(syscall.RUSAGE_SELF)-before,
		heap>>20, count, most, busy)
	if long && (took > 30*time.Second || heap > 1200<<20) {
		t.Error("the load takes more than 30 s or 1200 MB")
	}
	for _, step := range []struct {
		name     string
		mine     []int
		handover time.Duration
		want     int // partitions
	}{
		{"a generation of the group ends", nil, time.Hour, share},
		{"another begins", mine, time.Hour, share},
		{"a quarter of the partitions goes", mine[:share-share/4], 0, share - share/4},
		{"it comes back", mine, 0, share},
	} {
		ticks.take()
		p.shards.mu.Lock()
		p.shards.handover = step.handover
		p.shards.mu.Unlock()
		p.shards.assign(step.mine)
		took := holds(each * step.want)
		count, most, busy := ticks.take()
		t.Logf("%s: %s, longest of %d ticks %s, computed between two at most %s", step.name, took, count, most, busy)
		if long && most > 500*time.Millisecond {
			t.Errorf("%s: a tick took %s", step.name, most)
		}
	}
	t.Logf("memory of the process: %s", residentPeak(t))
	if share < largestate.Parts {
		began := time.Now()
		if _, err := db.MostProfitable(t.Context(), pg.Gainers{Market: largestate.Market(1), IsLong: true,
			Price: largestate.Price(1000), Except: mine, Most: remoteLimit}); err != nil {
			t.Fatal(err)
		}
		t.Logf("the most profitable of a side in the other partitions: %s", time.Since(began))
	}
}

// processorTime is what this process, or its calling thread, has used: unlike the clock's it is about the same on a
// busy machine.
func processorTime(who int) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(who, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// residentPeak is what the kernel says of the process: the most it has ever had resident.
func residentPeak(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "not known here"
	}
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); name == "VmHWM" {
			return "at most " + strings.TrimSpace(value)
		}
	}
	return "not known here"
}
