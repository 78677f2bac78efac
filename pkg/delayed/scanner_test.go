package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// work is a kind that a test makes up.
type work struct {
	name string
	do   func(ctx context.Context, tx delayed.Tx, j delayed.Job) (any, error)
}

func (w work) Name() string { return w.name }

func (w work) Do(ctx context.Context, tx delayed.Tx, j delayed.Job) (any, error) {
	return w.do(ctx, tx, j)
}

// plant is a scanner over a store in memory, and what it counts.
type fixture struct {
	*delayed.Scanner
	*memoryStore
	registry *prometheus.Registry
	metrics  *delayed.Metrics
}

func newFixture(m *memoryStore, cfg delayed.Config, kinds ...delayed.Kind) fixture {
	p := fixture{memoryStore: m, registry: prometheus.NewRegistry()}
	p.metrics = delayed.NewMetrics(p.registry)
	p.Scanner = delayed.NewScanner(cfg, "tester", m, kinds, nil, p.metrics, zerolog.Nop())
	return p
}

// figure is the sum of a metric over its labels: the value of counters and gauges, the sum of histograms.
func (p fixture) figure(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
		return sum
	}
	return 0
}

func (p fixture) wantFigures(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if got := p.figure(t, name); got != value {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
}

func (p fixture) order(t *testing.T, kind string, n int, due func(i int) time.Time) {
	t.Helper()
	for i := range n {
		if _, err := p.Add(t.Context(), delayed.Appointment{Kind: kind, Key: fmt.Sprintf("%05d", i), Payload: i,
			DueAt: due(i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func (p fixture) scan(t *testing.T) delayed.Outlook {
	t.Helper()
	o, err := p.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func atOnce(int) time.Time { return time.Now() }

func nothing() (any, error) { return nil, nil } //nolint:nilnil // nil is the result of work that has none

// DLY-1, DLY-3, DLY-4, DLY-9: after a day of down-time the next scan takes everything, oldest first, and the delays it
// measures are true.
func TestDownForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 500
		var keys []string
		cfg := delayed.DefaultConfig()
		cfg.Concurrency, cfg.Batch = 1, 30
		p := newFixture(newMemoryStore(), cfg,
			work{"test", func(_ context.Context, _ delayed.Tx, j delayed.Job) (any, error) {
				keys = append(keys, j.Key)
				return nothing()
			}})
		begun := time.Now()
		// scattered over 16 hours
		at := func(i int) time.Time { return begun.Add(time.Duration((i*7919)%jobs) * 2 * time.Minute) }
		p.order(t, "test", jobs, at)
		time.Sleep(24 * time.Hour)
		p.scan(t)
		want := 0.0
		for i := range jobs {
			want += time.Since(at(i)).Seconds()
		}
		if len(keys) != jobs || !slices.IsSortedFunc(keys, func(a, b string) int {
			i, _ := strconv.Atoi(a)
			j, _ := strconv.Atoi(b)
			return at(i).Compare(at(j))
		}) {
			t.Errorf("%d of %d, in the order %v", len(keys), jobs, keys)
		}
		p.wantFigures(t, map[string]float64{
			"delayed_delay_seconds": want, "delayed_found_total": jobs, "delayed_done_total": jobs,
			"delayed_failed_total": 0, "delayed_late_seconds": 0,
		})
	})
}

// DLY-4: at most so many at once, and yet all of them.
func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 41
		var mu sync.Mutex
		running, most := 0, 0
		p := newFixture(newMemoryStore(), delayed.DefaultConfig(),
			work{"test", func(context.Context, delayed.Tx, delayed.Job) (any, error) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				running--
				return nothing()
			}})
		p.order(t, "test", jobs, atOnce)
		begun := time.Now()
		p.scan(t)
		if took := time.Since(begun); most != 2 || took != 21*time.Second {
			t.Errorf("%d at once, in %s", most, took)
		}
		p.wantFigures(t, map[string]float64{"delayed_done_total": jobs})
	})
}

// DLY-6: every failing job waits longer each time, is parked after its last attempt with its error, and stops no other.
func TestFailuresBackOffAndPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 30
		cfg := delayed.Config{Interval: time.Second, Concurrency: 2, Batch: 7, MaxAttempts: 4,
			Backoff: 10 * time.Second, MaxBackoff: 25 * time.Second}
		begun := time.Now()
		var mu sync.Mutex
		tries := map[string][]time.Duration{}
		p := newFixture(newMemoryStore(), cfg,
			work{"test", func(_ context.Context, _ delayed.Tx, j delayed.Job) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				tries[j.Key] = append(tries[j.Key], time.Since(begun).Round(time.Second))
				switch {
				case strings.HasSuffix(j.Key, "3"):
					return nil, errBroken
				case strings.HasSuffix(j.Key, "7"):
					panic("no")
				case strings.HasSuffix(j.Key, "9") && j.Attempts == 0:
					return nil, errBroken
				}
				return j.Key, nil
			}})
		p.order(t, "test", jobs, atOnce)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := p.Run(ctx, timerTrigger{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		for _, j := range p.jobs(t) {
			want, status, text := []time.Duration{0}, delayed.Done, ""
			switch j.Key[len(j.Key)-1] {
			case '3', '7':
				want, status, text = []time.Duration{0, 10 * time.Second, 30 * time.Second, 55 * time.Second},
					delayed.Parked, "broken"
				if j.Key[len(j.Key)-1] == '7' {
					text = "panicked: no"
				}
			case '9':
				want, text = []time.Duration{0, 10 * time.Second}, "broken"
			}
			if j.Status != status || !strings.HasPrefix(j.LastError, text) || !slices.Equal(tries[j.Key], want) {
				t.Errorf("job %s: tried at %v, want %v; left %+v", j.Key, tries[j.Key], want, j)
			}
		}
		p.wantFigures(t, map[string]float64{
			"delayed_done_total": 24, "delayed_failed_total": 27, "delayed_parked_jobs": 6,
			"delayed_anomalies_total": 0,
		})
	})
}

// sleeper is a bell that nobody rings.
type timerTrigger struct{}

func (timerTrigger) Wait(ctx context.Context, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// DLY-7: too little is frozen, or the row makes no sense: parked at once, nothing changed, counted as an anomaly.
func TestAnomaliesAreParked(t *testing.T) {
	m := newMemoryStore()
	m.ledger["rich"], m.ledger["poor"] = chain.U64(100), chain.U64(9)
	p := newFixture(m, delayed.DefaultConfig(), delayed.Commissions{}, delayed.Reports{})
	for kind, payloads := range map[string]map[string]any{
		delayed.CommissionRelease: {
			"a": delayed.Release{Agent: "rich", Amount: chain.U64(60)},
			"b": delayed.Release{Agent: "poor", Amount: chain.U64(10)},
			"c": delayed.Release{Agent: "nobody", Amount: chain.U64(1)}, "d": delayed.Release{Agent: "rich"},
			"e": "no release",
		},
		delayed.DailyReport: {"31.12.": nil},
	} {
		for key, payload := range payloads {
			if _, err := m.Add(t.Context(), delayed.Appointment{Kind: kind, Key: key, Payload: payload,
				DueAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.scan(t)
	for _, j := range m.jobs(t) {
		want := map[bool]delayed.Status{true: delayed.Done, false: delayed.Parked}[j.Key == "a"]
		if j.Status != want || (j.LastError == "") != (want == delayed.Done) {
			t.Errorf("left %+v, want it %s", j, want)
		}
	}
	if m.ledger["rich"] != chain.U64(40) || m.ledger["poor"] != chain.U64(9) {
		t.Errorf("left %v", m.ledger)
	}
	p.wantFigures(t, map[string]float64{"delayed_anomalies_total": 5, "delayed_parked_jobs": 5})
}

func TestUnknownKindIsTriedAgain(t *testing.T) {
	p := newFixture(newMemoryStore(), delayed.DefaultConfig())
	p.order(t, "of tomorrow", 1, atOnce)
	p.scan(t)
	if j := p.jobs(t)[0]; j.Status != delayed.Pending || j.Attempts != 1 ||
		!strings.Contains(j.LastError, `"of tomorrow"`) {
		t.Errorf("left %+v", j)
	}
}

// DLY-9: scans that fail are counted in a row, come again after the backoff, and lose nothing.
func TestScansThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := delayed.DefaultConfig()
		cfg.Interval = time.Hour
		p := newFixture(newMemoryStore(), cfg,
			work{"test", func(context.Context, delayed.Tx, delayed.Job) (any, error) { return nothing() }})
		p.order(t, "test", 3, atOnce)
		p.down = errBroken
		ctx, stop := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { _ = p.Run(ctx, timerTrigger{}) })
		time.Sleep(25 * time.Second)
		p.wantFigures(t, map[string]float64{"delayed_scan_failures_in_a_row": 3, "delayed_done_total": 0})
		p.mu.Lock()
		p.down = nil
		p.mu.Unlock()
		time.Sleep(6 * time.Second)
		p.wantFigures(t, map[string]float64{"delayed_scan_failures_in_a_row": 0, "delayed_done_total": 3})
		stop()
		loop.Wait()
	})
}

// DLY-8: a scanner looks at every interval, and before it is over where a row falls due.
func TestRunWakesForTheNextRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var done []time.Duration
		scans := 0
		look := delayed.Source{Name: "looks", Feed: func(context.Context) (int, error) {
			scans++
			return 0, nil
		}}
		p := newFixture(newMemoryStore(), delayed.DefaultConfig())
		kind := work{"test", func(context.Context, delayed.Tx, delayed.Job) (any, error) {
			done = append(done, time.Since(begun))
			return nothing()
		}}
		p.Scanner = delayed.NewScanner(delayed.DefaultConfig(), "tester", p.memoryStore, []delayed.Kind{kind},
			[]delayed.Source{look}, p.metrics, zerolog.Nop())
		p.order(t, "test", 3, func(i int) time.Time { return begun.Add(time.Duration(i*i) * 3 * time.Second) })
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_ = p.Run(ctx, timerTrigger{})
		if want := []time.Duration{0, 3 * time.Second, 12 * time.Second}; !slices.Equal(done, want) {
			t.Errorf("done at %v, want %v", done, want)
		}
		if scans != 7 {
			t.Errorf("%v scans in a minute", scans)
		}
	})
}

// DLY-5: two scanners, one store, jobs that take their time.
func TestTwoScannersDoEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 200
		var mu sync.Mutex
		times := map[string]int{}
		kind := work{"test", func(_ context.Context, _ delayed.Tx, j delayed.Job) (any, error) {
			time.Sleep(time.Duration(len(j.Key)+int(j.ID)%7) * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			times[j.Key]++
			return nothing()
		}}
		m := newMemoryStore()
		a, b := newFixture(m, delayed.DefaultConfig(), kind), newFixture(m, delayed.DefaultConfig(), kind)
		a.order(t, "test", jobs, atOnce)
		var both sync.WaitGroup
		both.Go(func() { a.scan(t) })
		both.Go(func() { b.scan(t) })
		both.Wait()
		for key, n := range times {
			if n != 1 {
				t.Errorf("job %s was done %d times", key, n)
			}
		}
		ours, theirs := a.figure(t, "delayed_done_total"), b.figure(t, "delayed_done_total")
		if len(times) != jobs || ours == 0 || theirs == 0 || ours+theirs != jobs {
			t.Errorf("%d jobs done, %v by one and %v by the other", len(times), ours, theirs)
		}
	})
}

func TestConfigNamesTheProblem(t *testing.T) {
	if err := (delayed.Config{}).Validate(); err == nil {
		t.Errorf("got %v", err)
	}
	if err := delayed.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}
