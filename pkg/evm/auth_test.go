package evm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// gateway is a server of an endpoint that notes which header came with which method.
type gateway struct {
	*httptest.Server
	sent chan struct{} // of transactions
	mu   sync.Mutex
	had  map[string][]string // the values of a header, by method
}

func startGateway(t *testing.T, name string, moved string) *gateway {
	t.Helper()
	g := &gateway{sent: make(chan struct{}, 10), had: map[string][]string{}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
			Params []any
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		g.mu.Lock()
		g.had[q.Method] = append(g.had[q.Method], r.Header.Get(name))
		g.mu.Unlock()
		answer := `"0x38"`
		if q.Method == methodSend {
			g.sent <- struct{}{}
			if moved != "" {
				http.Redirect(w, r, moved, http.StatusTemporaryRedirect)
				return
			}
			raw, _ := hexutil.Decode(q.Params[0].(string))
			answer = fmt.Sprintf("%q", chain.Keccak256(raw).Hex())
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer)
	}))
	t.Cleanup(g.Close)
	return g
}

// all are the values by method.
func (g *gateway) all() map[string][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.had)
}

func (g *gateway) values(method string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.had[method]
}

// A header goes with every request to its own endpoint, and to no other: not to its neighbour, not to a public one.
// Nobody prints it.
func TestPrivateHeaders(t *testing.T) {
	const name, word = "X-Auth-Key", "hush"
	public, known, unknown := startGateway(t, name, ""), startGateway(t, name, ""), startGateway(t, name, "")
	cfg := DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(public.URL)}
	for _, g := range []*gateway{known, unknown} {
		cfg.PrivateURLs = append(cfg.PrivateURLs, secret.MustURL(g.URL))
	}
	cfg.PrivateHeaders = []secret.String{secret.New(name + ": " + word), secret.New("-")}
	if printed := fmt.Sprintf("%+v", cfg); strings.Contains(printed, word) {
		t.Errorf("the header is printed: %s", printed)
	}
	var log strings.Builder
	c, err := Dial(t.Context(), 56, cfg, zerolog.New(&log), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SendPrivate(t.Context(), []byte{1}, 0); err != nil {
		t.Error(err)
	}
	for _, g := range []*gateway{known, unknown} { // the slower one goes on being asked
		<-g.sent
	}
	for at, want := range map[*gateway]string{known: word, unknown: ""} {
		got := append(at.values(methodChainID), at.values(methodSend)...)
		if len(at.values(methodSend)) != 1 || strings.Join(got, "") != strings.Repeat(want, len(got)) {
			t.Errorf("the header of %d requests: %q, want %q", len(got), got, want)
		}
	}
	for method := range public.all() {
		if got := strings.Join(public.values(method), ""); got != "" {
			t.Errorf("a public endpoint got %q with %s", got, method)
		}
	}
	if strings.Contains(log.String(), word) {
		t.Errorf("the header is logged: %s", log.String())
	}
}

// An endpoint to read from has a header of its own too, and keeps it when it is asked apart from the others.
func TestPublicHeaders(t *testing.T) {
	const name, word = "X-Api-Key", "hush"
	known, unknown := startGateway(t, name, ""), startGateway(t, name, "")
	cfg := DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(unknown.URL), secret.MustURL(known.URL)}
	cfg.Headers = []secret.String{secret.New("-"), secret.New(name + ": " + word)}
	alone := cfg.Only(func(i int) bool { return i == 1 })
	for _, cfg := range []Config{cfg, alone} {
		c, err := Dial(t.Context(), 56, cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for at, want := range map[*gateway]string{known: word, unknown: ""} {
		for method, got := range at.all() {
			if len(got) == 0 || strings.Join(got, "") != strings.Repeat(want, len(got)) {
				t.Errorf("%s was sent with %q, want %q", method, got, want)
			}
		}
	}
	if got := len(known.values(methodChainID)) - len(unknown.values(methodChainID)); got != 1 {
		t.Errorf("apart from the others the endpoint was met %d times, want once", got)
	}
}

// An answer that points elsewhere does not get the header taken there, nor the transaction where there is no header.
func TestNothingIsTakenElsewhere(t *testing.T) {
	for _, header := range []string{"X-Auth-Key:hush", noHeader} {
		notTakenElsewhere(t, header)
	}
}

func notTakenElsewhere(t *testing.T, header string) {
	t.Helper()
	const name = "X-Auth-Key"
	stranger, public := startGateway(t, name, ""), startGateway(t, name, "")
	moved := startGateway(t, name, stranger.URL)
	cfg := DefaultConfig()
	cfg.URLs, cfg.PrivateURLs = []secret.URL{secret.MustURL(public.URL)}, []secret.URL{secret.MustURL(moved.URL)}
	cfg.PrivateHeaders = []secret.String{secret.New(header)}
	c, err := Dial(t.Context(), 56, cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SendPrivate(t.Context(), []byte{1}, 0); err == nil || len(moved.values(methodSend)) != 1 {
		t.Errorf("%v, asked %d times", err, len(moved.values(methodSend)))
	}
	if got := stranger.values(methodSend); len(got) > 0 {
		t.Errorf("a redirect was followed, with %q", got)
	}
}
