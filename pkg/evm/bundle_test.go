package evm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/setting/secret"
)

// builder is a server of a block builder, or of a node, that notes what it is given.
type builder struct {
	*httptest.Server
	given chan struct{} // once for each transaction or bundle

	mu     sync.Mutex
	answer string   // to bundles
	got    []string // header, method and parameters of what is no question
}

func startBuilder(t *testing.T) *builder {
	t.Helper()
	b := &builder{given: make(chan struct{}, 10), answer: `"result":{"bundleHash":"0x01"}`}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID, Params json.RawMessage
			Method     string
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := `"result":"0x38"`
		if q.Method != methodChainID && q.Method != methodBlockAt {
			b.mu.Lock()
			b.got = append(b.got, fmt.Sprintf("%s%s%s", r.Header.Get("Authorization"), q.Method, q.Params))
			answer = b.answer
			b.mu.Unlock()
			b.given <- struct{}{}
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *builder) answers(with string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = with
}

func (b *builder) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// dialBuilder makes a client of a public endpoint, a private one that takes transactions and one that takes bundles.
func dialBuilder(t *testing.T) (c *Client, public, relay, block *builder) {
	t.Helper()
	public, relay, block = startBuilder(t), startBuilder(t), startBuilder(t)
	cfg := DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(public.URL)}
	cfg.PrivateURLs = []secret.URL{secret.MustURL(relay.URL), secret.MustURL(block.URL)}
	cfg.PrivateHeaders = []secret.String{secret.New("-"), secret.New("Authorization: hush")}
	cfg.PrivateKinds = []string{kindTransaction, kindBundle}
	c, err := Dial(t.Context(), 56, cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, public, relay, block
}

// A builder gets a private transaction as a bundle of one that may not revert, bounded by its private time, with its
// own header, and never as a transaction; nobody else gets a bundle, and no public endpoint gets anything.
func TestBundles(t *testing.T) {
	c, public, relay, block := dialBuilder(t)
	for until, want := range map[uint64]string{
		0:                 `hush` + methodBundle + `[{"txs":["0x0102"]}]`,
		1_700_000_000_000: `hush` + methodBundle + `[{"txs":["0x0102"],"maxTimestamp":1700000000}]`,
		1_700_000_000_001: `hush` + methodBundle + `[{"txs":["0x0102"],"maxTimestamp":1700000001}]`,
	} {
		if err := c.SendPrivate(t.Context(), []byte{1, 2}, until); err != nil {
			t.Error(err)
		}
		for _, b := range []*builder{relay, block} { // the slower one goes on being asked
			<-b.given
		}
		if got := block.all(); got[len(got)-1] != want {
			t.Errorf("until %d: the builder got %s, want %s", until, got[len(got)-1], want)
		}
		if got := relay.all(); got[len(got)-1] != methodSend+`["0x0102"]` {
			t.Errorf("until %d: the relay got %s", until, got[len(got)-1])
		}
	}
	if got := public.all(); len(got) > 0 {
		t.Errorf("a public endpoint got %s", got)
	}
	if err := c.SendRaw(t.Context(), []byte{3}); err == nil { // the answer of a builder is none of a node
		t.Error("a bundle's name was taken for a transaction's hash")
	}
	if got := len(block.all()); got != 3 {
		t.Errorf("a public transaction was given to the builder: %d bundles", got)
	}
}

// What builders answer: a name of whatever form, the same bundle again, or a refusal.
func TestBundleAnswers(t *testing.T) {
	c, _, relay, block := dialBuilder(t)
	relay.answers(`"error":{"code":-32000,"message":"closed"}`)
	for answer, want := range map[string]Class{
		`"result":"0x0000000000000000000000000000000000000000000000000000000000000001"`:                             Accepted,
		`"result":{"bundleHash":"0x01"}`:                                                                            Accepted,
		`"error":{"code":-32000,"message":"bundle already exist"}`:                                                  Accepted,
		`"error":{"code":-32000,"message":"bundle gas price is too low"}`:                                           Ambiguous,
		`"error":{"code":-38000,"message":"the maxTimestamp should not be less than currentBlockTimestamp"}`:        Ambiguous,
		`"error":{"code":-32601,"message":"the method eth_sendBundle does not exist/is not available"}`:             Ambiguous,
		`"error":{"code":-32000,"message":"non-reverting tx in bundle failed: execution reverted","data":"0x1234"}`: Reverted,
	} {
		block.answers(answer)
		if got := SendClass(c.SendPrivate(t.Context(), []byte{1}, 0)); got != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
}
