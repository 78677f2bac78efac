package price

import (
	"context"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/wire"
	"perpkeeper/services/devnet/pricefeed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hangGuard = 60 * time.Second

func testConfig(url string) Config {
	return Config{URL: secret.MustURL(url), Interval: 10 * time.Millisecond, RequestTimeout: 5 * time.Second}
}

func newSource(t *testing.T, url string) *HTTP {
	t.Helper()
	h := NewHTTP(testConfig(url))
	t.Cleanup(h.Close)
	return h
}

// runFeed runs a feed until the test ends and returns what it emits.
func runFeed(t *testing.T, source Source, emit func([]Report) error) *Feed {
	t.Helper()
	f := NewFeed(source, 10*time.Millisecond, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.Run(ctx, func(_ context.Context, r []Report) error { return emit(r) }); !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return f
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(hangGuard):
		t.Fatalf("never came: %s", what)
		panic("unreachable")
	}
}

// The demo exchange's service, end to end (PIPE-9): every report once, in order for each token, as signed.
func TestFeedOfTheDemoService(t *testing.T) {
	wbnb, usdc := common.Address{1}, common.Address{2}
	service, err := pricefeed.New(pricefeed.Config{
		Tokens: []pricefeed.Token{
			{Address: wbnb, Symbol: "WBNB", Price: big.NewInt(6_000_000_000_000_000), Stride: 10, Spread: 2},
			{Address: usdc, Symbol: "USDC", Price: big.NewInt(1_000_000_000_000_000_000)},
		},
		Provider: common.Address{9}, Interval: 20 * time.Millisecond,
		Sign: func(token common.Address, low, _ *big.Int, _ uint64) []byte { return append(token[:1], low.Bytes()...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := service.Run(ctx); err != nil {
			t.Errorf("running the service: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })

	emitted := make(chan Report, 1000)
	feed := runFeed(t, newSource(t, service.URL()), func(rs []Report) error {
		for _, r := range rs {
			emitted <- r
		}
		return nil
	})
	last := map[byte]uint64{}
	for range 20 {
		r := receive(t, "a report", emitted)
		if r.TimeMs <= last[r.Token[0]] || r.Provider != [20]byte{9} || r.Data[0] != r.Token[0] || perp.UintFromBytes(r.Data[1:]) != r.Min {
			t.Fatalf("report %+v after %d", r, last[r.Token[0]])
		}
		last[r.Token[0]] = r.TimeMs
	}
	if len(last) != 2 || feed.Health() != nil {
		t.Errorf("reports of %d tokens, health %v", len(last), feed.Health())
	}
}

// answers is a Source that gives one prepared answer after the other, and the last one for ever.
type answers struct {
	asked atomic.Int32
	list  [][]Report
}

func (a *answers) Latest(context.Context) ([]Report, error) {
	at := int(a.asked.Add(1)) - 1
	answer := a.list[min(at, len(a.list)-1)]
	if answer == nil {
		return nil, io.ErrUnexpectedEOF
	}
	return answer, nil
}

func report(i int, second uint64) Report {
	return Report{Token: token(i), TimeMs: second * 1000, Min: perp.U64(1), Max: perp.U64(2)}
}

func TestFeedEmitsEachReportOnce(t *testing.T) {
	inverted := report(1, 9)
	inverted.Max = perp.Uint{}
	source := &answers{list: [][]Report{
		{report(0, 10), report(0, 10), report(0, 9)}, // repeated within one answer
		nil,                            // no answer
		{report(0, 10), report(1, 10)}, // one new
		{{}, inverted, {Token: token(1)}, report(0, 8)}, // nothing usable, nothing new
		{report(0, 11)},
	}}
	var emitted []Report
	failures := 2
	done := make(chan []Report)
	feed := runFeed(t, source, func(rs []Report) error {
		if failures > 0 {
			failures--
			source.asked.Store(0)
			return errors.New("the topic is away")
		}
		if emitted = append(emitted, rs...); len(emitted) == 3 {
			done <- emitted
		}
		return nil
	})
	got := receive(t, "three reports", done)
	for i, want := range []Report{report(0, 10), report(1, 10), report(0, 11)} {
		if !same(got[i], want) {
			t.Errorf("report %d: %+v, want %+v", i, got[i], want)
		}
	}
	if refused := testutil.ToFloat64(feed.metrics.refused); refused != 3 {
		t.Errorf("%v reports refused, want 3", refused)
	}
}

func TestFeedSaysWhatIsWrong(t *testing.T) {
	const token = "0a1b2c3d4e5f"
	var broken atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() || r.URL.Path != "/"+token+"/v1/reports" {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `[]`)
	}))
	t.Cleanup(service.Close)
	source := newSource(t, service.URL+"/"+token)
	if _, err := source.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if _, err := source.Latest(t.Context()); err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "500") {
		t.Errorf("a service that fails: %v", err)
	}
	service.Close()
	if _, err := source.Latest(t.Context()); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("a service that is gone: %v", err)
	}
}

func TestMessageRoundTrip(t *testing.T) {
	want := Report{Token: token(1), Provider: token(2), Data: []byte{3}, Min: perp.U64(4), Max: perp.U64(5), TimeMs: 6000, Source: "s"}
	r, err := wire.Encode(want.Token[:], want.Message(7), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := wire.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	got := FromMessage(m.(wire.Price))
	if !same(got, want) || got.Provider != want.Provider || got.Max != want.Max || got.Source != want.Source || m.(wire.Price).ReceivedMs != 7 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if err := (Config{Interval: time.Hour}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "interval: 1h0m0s") {
		t.Errorf("an hour: %v", err)
	}
}

// Whatever a service answers, reading it neither panics nor makes up a report.
func FuzzDecodeReports(f *testing.F) {
	f.Add([]byte(`[{"token":"0x0100000000000000000000000000000000000000","provider":"0x0900000000000000000000000000000000000000",` +
		`"data":"0x01","minPrice":"5","maxPrice":"6","timestampMs":1700000000000}]`))
	f.Add([]byte(`[{"minPrice":5}]`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reports, err := decodeReports(raw, "fuzz")
		if err != nil && reports != nil {
			t.Fatalf("%d reports beside an error", len(reports))
		}
		for _, r := range reports {
			if r.Validate() == nil && (r.Token.IsZero() || r.Min.IsZero() || r.Max.Less(r.Min)) {
				t.Fatalf("%+v passes", r)
			}
		}
	})
}
