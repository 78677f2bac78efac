package price

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"perpkeeper/pkg/chain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a Source that gives what the test gives it. An error in place of reports breaks it off.
type script struct {
	lines chan line
	runs  atomic.Int32
}

type line struct {
	reports    []Report
	unreadable []error
	broken     error
}

func newScript() *script { return &script{lines: make(chan line)} }

func (s *script) Run(ctx context.Context, take Take) error {
	s.runs.Add(1)
	for {
		select {
		case l := <-s.lines:
			if l.broken != nil {
				return l.broken
			}
			take(l.reports, l.unreadable)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// give gives a report of now.
func (s *script) give(t chain.Address, price uint64) {
	s.lines <- line{reports: []Report{{Token: t, TimeMs: uint64(time.Now().UnixMilli()), Min: chain.U64(price),
		Max: chain.U64(price)}}}
	synctest.Wait()
}

// harness runs a feed in a bubble of its own time.
type harness struct {
	feed    *Feed
	sources []*script
	log     bytes.Buffer

	mu      sync.Mutex
	emitted []Report
	refuse  int // how often emitting fails
}

func runFeed(t *testing.T, names ...string) *harness {
	t.Helper()
	var members []Member
	for _, name := range names {
		members = append(members, Member{Name: name})
	}
	return runMembers(t, members...)
}

func runMembers(t *testing.T, members ...Member) *harness {
	t.Helper()
	h := &harness{}
	for i := range members {
		h.sources = append(h.sources, newScript())
		members[i].Source = h.sources[i]
	}
	gates, failover := DefaultGates(), Failover{After: 2 * time.Second, ReturnAfter: 5 * time.Second}
	h.feed = NewFeed(members, gates, failover, zerolog.New(&h.log), NewMetrics(prometheus.NewRegistry()))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.feed.Run(ctx, h.emit); !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	synctest.Wait()
	return h
}

func (h *harness) emit(_ context.Context, reports []Report) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse > 0 {
		h.refuse--
		return errors.New("the topic is away")
	}
	h.emitted = append(h.emitted, reports...)
	return nil
}

// taken are the prices and sources of what was emitted since it was asked last.
func (h *harness) taken() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, r := range h.emitted {
		out = append(out, r.Source+" "+r.Min.String())
	}
	h.emitted = nil
	return strings.Join(out, ", ")
}

func (h *harness) want(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := h.taken(); got != want {
		t.Errorf("emitted %q, want %q", got, want)
	}
}

func (h *harness) healthy(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if err := h.feed.Health(); want == "" && err != nil || want != "" &&
		(err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("health %v, want %q", err, want)
	}
}

func (h *harness) active(name string) float64 {
	return testutil.ToFloat64(h.feed.metrics.active.WithLabelValues(name))
}

func (h *harness) up(name string) float64 {
	return testutil.ToFloat64(h.feed.metrics.up.WithLabelValues(name))
}

// The substitute steps in when the first source is silent, gated or broken for too long, and leaves when that is steady
// again (PIPE-9).
func TestFeedFailsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runFeed(t, "first", "second")
		first, second := h.sources[0], h.sources[1]
		h.healthy(t, "no price report yet; first: no answer yet")
		first.give(token(0), 100)
		second.give(token(0), 100)
		h.want(t, "first 100")
		h.healthy(t, "")

		first.lines <- line{broken: errors.New("connection refused")}
		time.Sleep(1500 * time.Millisecond)
		second.give(token(0), 101)
		h.want(t, "")
		time.Sleep(time.Second)
		h.want(t, "second 101")
		h.healthy(t, "")
		if h.active("first") != 0 || h.active("second") != 1 || h.up("first") != 0 || h.up("second") != 1 {
			t.Error("the metrics do not show who serves")
		}

		for range 7 { // the first is back, and the second stays until the first is steady
			time.Sleep(900 * time.Millisecond)
			first.give(token(0), 102)
			second.give(token(0), 102)
		}
		time.Sleep(900 * time.Millisecond)
		if h.taken(); h.active("first") != 1 || h.active("second") != 0 {
			t.Error("the first did not take back its place")
		}
		first.give(token(0), 103)
		h.want(t, "first 103")

		time.Sleep(10 * time.Second)
		h.healthy(t, "no price report of "+token(0).Hex()+" from ")
	})
}

// A feed of one source says what is missing and why.
func TestFeedSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runFeed(t, "only")
		h.sources[0].give(token(0), 100)
		h.healthy(t, "")
		for range 2 {
			h.sources[0].lines <- line{broken: errors.New("connection refused")}
			time.Sleep(1500 * time.Millisecond)
		}
		h.healthy(t, "; only: connection refused")
		h.sources[0].give(token(0), 100)
		h.healthy(t, "")
		if h.sources[0].runs.Load() != 3 || testutil.ToFloat64(h.feed.metrics.failures.WithLabelValues("only")) != 2 {
			t.Errorf("%d runs", h.sources[0].runs.Load())
		}
	})
}

// A source that is connected and gives no price of what is wanted of it is left and run again, whatever else it sends,
// and says so (PIPE-9).
func TestFeedLeavesASourceWithoutPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runMembers(t, Member{Name: "only", Tokens: []chain.Address{token(0)}})
		only := h.sources[0]
		for range 10 {
			only.give(token(0), 100)
			time.Sleep(1900 * time.Millisecond)
		}
		synctest.Wait()
		if only.runs.Load() != 1 {
			t.Fatalf("it was left %d times while it gave prices", only.runs.Load()-1)
		}
		begin := time.Now()
		for only.runs.Load() == 1 && time.Since(begin) < time.Minute {
			only.lines <- line{unreadable: []error{errors.New("a heartbeat")}}
			only.give(token(1), 100)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if after := time.Since(begin); after > 2*time.Second || only.runs.Load() != 2 {
			t.Errorf("run %d times, left after %s", only.runs.Load(), after)
		}
		time.Sleep(2 * time.Second)
		h.healthy(t, "only: it has given no price for 2s")
	})
}

// A source that gives reports between its failures is not made to wait longer and longer.
func TestFeedForgivesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runFeed(t, "only")
		begin := time.Now()
		for range 20 {
			h.sources[0].give(token(0), 100)
			h.sources[0].lines <- line{broken: errors.New("connection reset")}
		}
		if waited := time.Since(begin); waited > 20*100*time.Millisecond {
			t.Errorf("twenty short pauses took %s", waited)
		}
	})
}

// What cannot be emitted is emitted again, before anything that comes later.
func TestFeedEmitsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runFeed(t, "only")
		h.refuse = 3
		h.sources[0].give(token(0), 100)
		h.healthy(t, "emitting 1 price reports: the topic is away")
		h.want(t, "")
		time.Sleep(10 * time.Millisecond)
		h.sources[0].give(token(0), 101)
		time.Sleep(time.Minute)
		h.want(t, "only 100, only 101")
		h.sources[0].give(token(0), 101)
		h.healthy(t, "")
	})
}

// A source is not taken for silent because nothing could be emitted for a while.
func TestFeedStaysWhileItCannotEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runFeed(t, "first", "second")
		again := func(refuse int) {
			h.mu.Lock()
			h.refuse = refuse
			h.mu.Unlock()
			for range 10 {
				for _, s := range h.sources {
					s.give(token(0), 100)
				}
				time.Sleep(time.Second)
			}
		}
		again(1_000_000)
		again(0)
		if got := h.taken(); strings.Count(got, "first 100") != 20 || strings.Contains(got, "second") ||
			h.active("first") != 1 {
			t.Errorf("emitted %s", got)
		}
	})
}

// Nothing goes without a count, and the log is not flooded.
func TestFeedCountsWhatItRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runFeed(t, "only")
		only := h.sources[0]
		only.give(token(0), 100)
		for range 50 {
			only.lines <- line{unreadable: []error{errors.New("gibberish")}, reports: []Report{{}}}
		}
		only.give(token(0), 101) // of the same moment
		time.Sleep(time.Second)
		only.give(token(0), 150)
		time.Sleep(time.Second)
		only.give(token(0), 151)
		h.want(t, "only 100, only 150, only 151")
		m := h.feed.metrics
		for what, tt := range map[string]struct{ got, want float64 }{
			"received": {testutil.ToFloat64(m.received.WithLabelValues("only")), 104},
			"invalid":  {testutil.ToFloat64(m.rejected.WithLabelValues("only", "invalid")), 100},
			"jump":     {testutil.ToFloat64(m.rejected.WithLabelValues("only", "jump")), 1},
		} {
			if tt.got != tt.want {
				t.Errorf("%v %s, want %v", tt.got, what, tt.want)
			}
		}
		if lines := strings.Count(h.log.String(), "refusing a report"); lines != 2 {
			t.Errorf("%d lines in the log:\n%s", lines, h.log.String())
		}
	})
}

// Every report says when it was received and from which source, whatever the source wrote there.
func TestFeedStampsReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := runFeed(t, "only")
		now := uint64(time.Now().UnixMilli())
		h.sources[0].lines <- line{reports: []Report{{Token: token(0), TimeMs: now - 500, Min: chain.U64(1),
			Max: chain.U64(1), Source: "another"}}}
		synctest.Wait()
		if r := h.emitted[0]; r.Source != "only" || r.ReceivedMs != now {
			t.Errorf("%+v", r)
		}
	})
}
