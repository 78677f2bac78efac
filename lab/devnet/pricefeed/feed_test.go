package pricefeed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

var (
	weth = common.HexToAddress("0x01")
	usdc = common.HexToAddress("0x02")
	// second of the first report in tests that make their own time.
	begin = time.UnixMilli(1_800_000_000_000)
)

func wei(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic(text)
	}
	return n
}

// fakeProof shows what was signed.
func fakeProof(token common.Address, low, high *big.Int, second uint64) []byte {
	return fmt.Appendf(nil, "%s %s %s %d", token, low, high, second)
}

func demo() Config {
	return Config{
		Tokens: []Token{
			{Address: weth, Price: wei("5000000000000000"), Stride: 3, Spread: 2},
			{Address: usdc, Price: wei("1000000000000000000000000")},
		},
		Provider: common.HexToAddress("0xfeed"), Sign: fakeProof, Seed: 1,
	}
}

func newFeed(t *testing.T, cfg Config) *Feed {
	t.Helper()
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func run(t *testing.T, f *Feed) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// prices are the first token's max prices of n ticks.
func prices(f *Feed, n int) string {
	var out strings.Builder
	for i := range n {
		f.tick(begin.Add(time.Duration(i) * time.Second))
		reports, _ := f.Latest()
		fmt.Fprintln(&out, reports[0].MaxPrice)
	}
	return out.String()
}

func TestShock(t *testing.T) {
	cfg := demo()
	cfg.Tokens[0].Stride, cfg.Tokens[0].Spread = 0, 0
	f := newFeed(t, cfg)
	for _, step := range []struct {
		points int64
		want   string
	}{{-2000, "4000000000000000"}, {2500, "5000000000000000"}, {-1, "4999500000000000"}} {
		if err := f.Shock(weth, step.points); err != nil {
			t.Fatal(err)
		}
		if low, high := f.Mark(weth); low.String() != step.want || high.String() != step.want {
			t.Errorf("after %d: %s to %s, want %s", step.points, low, high, step.want)
		}
	}
	for _, bad := range []struct {
		token  common.Address
		points int64
	}{{weth, -10_000}, {common.Address{}, 1}} {
		if err := f.Shock(bad.token, bad.points); err == nil {
			t.Errorf("shocked %s by %d", bad.token, bad.points)
		}
	}
}

func TestPin(t *testing.T) {
	f := newFeed(t, demo())
	if err := f.Pin(weth, big.NewInt(100_000)); err != nil {
		t.Fatal(err)
	}
	prices(f, 50)
	if low, high := f.Mark(weth); low.Int64() != 99_990 || high.Int64() != 100_010 {
		t.Errorf("pinned at 100000 with 2 basis points of spread: %s to %s", low, high)
	}
	if err := f.Unpin(weth); err != nil {
		t.Fatal(err)
	}
	if walked := prices(f, 50); strings.Count(walked, "100010\n") == 50 {
		t.Error("the price does not walk again")
	}
	if err := f.Pin(weth, new(big.Int)); err == nil {
		t.Error("pinned a price of 0")
	}
}

// answered is a report as a client reads it.
type answered struct {
	Token, Provider, Data, MinPrice, MaxPrice string
	TimestampMS                               uint64 `json:"timestampMs"`
}

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestReportsOverHTTP(t *testing.T) {
	f := newFeed(t, demo())
	run(t, f)
	status, body := get(t, f.URL()+"/v1/reports")
	var reports []answered
	if err := json.Unmarshal(body, &reports); err != nil || status != http.StatusOK || len(reports) != 2 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	for _, r := range reports {
		low, high := wei(r.MinPrice), wei(r.MaxPrice)
		token := common.HexToAddress(r.Token)
		if proof := fakeProof(token, low, high, r.TimestampMS/1000); !bytes.Equal(common.FromHex(r.Data), proof) {
			t.Errorf("proof %s does not prove %+v", common.FromHex(r.Data), r)
		}
		if common.HexToAddress(r.Provider) != common.HexToAddress("0xfeed") {
			t.Errorf("provider %s", r.Provider)
		}
	}
	status, body = get(t, f.URL()+fmt.Sprintf("/v1/reports?at=%d", time.Now().Add(time.Hour).Unix()))
	if status != http.StatusOK || strings.TrimSpace(string(body)) != "[]" {
		t.Errorf("reports of the future: %d %s", status, body)
	}
	if status, _ := get(t, f.URL()+"/v1/reports?at=soon"); status != http.StatusBadRequest {
		t.Errorf("at=soon: %d", status)
	}
	f.mu.Lock()
	f.dropped = true
	f.mu.Unlock()
	if status, _ := get(t, f.URL()+"/v1/reports?at=1"); status != http.StatusGone {
		t.Errorf("at=1: %d", status)
	}
}

// streamed are the first events of the stream for a reader that saw those up to an id; an empty id means none.
func streamed(t *testing.T, f *Feed, after string, n int) (times []uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL()+"/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("content type %s", kind)
	}
	id := ""
	for lines := bufio.NewScanner(resp.Body); len(times) < n && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = text
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var reports []answered
		if err := json.Unmarshal([]byte(data), &reports); err != nil || len(reports) != 2 ||
			id != fmt.Sprint(reports[0].TimestampMS) {
			t.Fatalf("event %s %s: %v", id, data, err)
		}
		times = append(times, reports[0].TimestampMS)
	}
	if len(times) < n {
		t.Fatalf("the stream ended after %d events", len(times))
	}
	return times
}

func TestStreamFollowsTheTicks(t *testing.T) {
	cfg := demo()
	cfg.Interval = 5 * time.Millisecond
	f := newFeed(t, cfg)
	run(t, f)
	times := streamed(t, f, "", 20)
	for i := 1; i < len(times); i++ {
		if times[i] <= times[i-1] {
			t.Errorf("event of %d after one of %d", times[i], times[i-1])
		}
	}
	again := streamed(t, f, fmt.Sprint(times[9]), 10)
	if !slices.Equal(again, times[10:]) {
		t.Errorf("after %d came %v, want %v", times[9], again, times[10:])
	}
}
