package evm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/secret"
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

func (g *gateway) values(method string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.had[method]
}

// A header goes with every request to its own endpoint, and to no other: not to its neighbour, not to a public one, not
// to where an answer points. Nobody prints it.
func TestPrivateHeaders(t *testing.T) {
	const name, word = "X-Auth-Key", "hush"
	stranger := startGateway(t, name, "")
	public, known, unknown := startGateway(t, name, ""), startGateway(t, name, ""), startGateway(t, name, "")
	moved := startGateway(t, name, stranger.URL)
	cfg := DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(public.URL)}
	for _, g := range []*gateway{known, unknown, moved} {
		cfg.PrivateURLs = append(cfg.PrivateURLs, secret.MustURL(g.URL))
	}
	cfg.PrivateHeaders = []secret.String{secret.New(name + ": " + word), secret.New("-"), secret.New(name + ":" + word)}
	if printed := fmt.Sprintf("%+v", cfg); strings.Contains(printed, word) {
		t.Errorf("the header is printed: %s", printed)
	}
	var log strings.Builder
	c, err := Dial(t.Context(), 56, cfg, zerolog.New(&log), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendPrivate(t.Context(), []byte{1}); err != nil {
		t.Error(err)
	}
	for _, g := range []*gateway{known, unknown, moved} { // the slower ones go on being asked
		<-g.sent
	}
	c.Close()
	for _, e := range []struct {
		at   *gateway
		want string
	}{{known, word}, {unknown, ""}, {moved, word}} {
		got := append(e.at.values(methodChainID), e.at.values(methodSend)...)
		if len(e.at.values(methodSend)) != 1 || strings.Join(got, "") != strings.Repeat(e.want, len(got)) {
			t.Errorf("the header of %d requests: %q, want %q", len(got), got, e.want)
		}
	}
	if got := stranger.values(methodSend); len(got) > 0 {
		t.Errorf("a redirect was followed, with %q", got)
	}
	for method := range public.had {
		if got := strings.Join(public.values(method), ""); got != "" {
			t.Errorf("a public endpoint got %q with %s", got, method)
		}
	}
	if strings.Contains(log.String(), word) {
		t.Errorf("the header is logged: %s", log.String())
	}
}
