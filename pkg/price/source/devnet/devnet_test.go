package devnet

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/pricefeed"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
	"perpkeeper/pkg/setting/secret"
)

// demo runs the demo exchange's price service until the test ends, and returns its address.
func demo(t testing.TB, interval time.Duration) string {
	t.Helper()
	service, err := pricefeed.New(pricefeed.Config{
		Tokens: []pricefeed.Token{
			{Address: common.Address(sourcetest.Wbnb), Price: big.NewInt(6_000_000_000_000_000),
				Stride: 10,
				Spread: 2},
			{Address: common.Address(sourcetest.Usdc), Price: big.NewInt(1_000_000_000_000_000_000)},
		},
		Provider: common.Address(sourcetest.Provider), Interval: interval,
		Sign: func(token common.Address, low, _ *big.Int, _ uint64) []byte {
			return append(token[19:], low.Bytes()...)
		},
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
	return service.URL()
}

// feedOf is a feed of nothing but the service at an address.
func feedOf(t testing.TB, address string) *price.Feed {
	t.Helper()
	member := price.Member{Name: "devnet",
		Source: sourcetest.Source(t, Plugin, source.Table{URL: secret.MustURL(address)}, nil)}
	return price.NewFeed([]price.Member{member}, price.DefaultGates(), price.DefaultFailover(), zerolog.Nop(),
		price.NewMetrics(prometheus.NewRegistry()))
}

// The demo exchange's service, end to end (PIPE-9): every report once, in order for each token, as signed.
func TestFeedOfTheDemoService(t *testing.T) {
	feed := feedOf(t, demo(t, 20*time.Millisecond))
	emitted := make(chan price.Report, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = feed.Run(ctx, func(_ context.Context, rs []price.Report) error { // it ends because ctx does
			for _, r := range rs {
				emitted <- r
			}
			return nil
		})
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	last := map[byte]uint64{}
	for range 20 {
		select {
		case r := <-emitted:
			signed := r.Data[0] == r.Token[19] && chain.UintFromBytes(r.Data[1:]) == r.Min
			if r.TimeMs <= last[r.Data[0]] || r.Provider != sourcetest.Provider || !signed || r.Source != "devnet" {
				t.Fatalf("report %+v after %d", r, last[r.Data[0]])
			}
			last[r.Data[0]] = r.TimeMs
		case <-time.After(sourcetest.HangGuard):
			t.Fatalf("no report; %v", feed.Health())
		}
	}
	if len(last) != 2 || feed.Health() != nil {
		t.Errorf("reports of %d tokens, health %v", len(last), feed.Health())
	}
}

// demoReport is what the demo's service says of one token: its data is one byte.
func demoReport(data byte, low, high, ms uint64) string {
	return fmt.Sprintf(
		`[{"token":"%s","provider":"%s","data":"0x%02x","minPrice":"%d","maxPrice":"%d","timestampMs":%d}]`,
		sourcetest.Wbnb,
		sourcetest.Provider, data, low, high, ms)
}

var (
	first  = demoReport(10, 5, 6, 1700000000000)
	second = demoReport(11, 7, 7, 1700000000250)
)

// A stream that breaks is taken up where it was; what is in it that nobody wants is left out.
func TestDevnetResumes(t *testing.T) {
	var connections atomic.Int32
	s := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch connections.Add(1) {
		case 1:
			_, _ = io.WriteString(w, "id: 1\ndata: "+first+"\n\nid: 2\ndata: ["+first[:20]) // cut off
		case 2:
			if id := r.Header.Get("Last-Event-ID"); id != "1" || r.URL.Path != "/region/7f3a9c/v1/stream" {
				t.Errorf("resumed %s after %q", r.URL.Path, id)
			}
			_, _ = io.WriteString(w, "id: 2\ndata: "+second+"\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	r := sourcetest.Run(t, Plugin,
		source.Table{Kind: "devnet", URL: sourcetest.At(s), Tokens: []source.Token{{Address: sourcetest.Wbnb}}}, nil)
	if g := r.Next(t); g.Reports[0].Data[0] != 10 {
		t.Errorf("%+v", g)
	}
	if g := r.Next(t); g.Reports[0].Data[0] != 11 {
		t.Errorf("%+v", g)
	}
	if err := r.Failures(); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("the failure: %v", err)
	}
	none, err := decode([]byte(first), source.Wanted{sourcetest.Usdc: true})
	if err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

// Whatever a service answers, reading it neither panics nor makes up a report.
func FuzzDecodeDevnet(f *testing.F) {
	f.Add([]byte(first))
	f.Add([]byte(`[{"minPrice":5}]`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reports, err := decode(raw, nil)
		if err != nil && reports != nil {
			t.Fatalf("%d reports beside an error", len(reports))
		}
		sourcetest.Sane(t, reports)
	})
}
