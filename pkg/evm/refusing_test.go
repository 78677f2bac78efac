package evm

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// everything is what a fake node answers.
var everything = []string{"batch", "eth_chainId", methodBlockAt, methodBlock, methodReceipts, methodGasPrice}

// detail is what was seen of an endpoint that is excluded for a purpose and a reason; empty if it is not.
func detail(c *Client, at int, p Purpose, r Reason) string {
	for _, x := range c.Endpoints()[at].Excluded {
		if x.Purpose == p && x.Reason == r {
			return x.Detail
		}
	}
	return ""
}

// An endpoint that answers with errors of its own and with nothing else is excluded within seconds and named with its
// words, whatever these are; the others are asked meanwhile, and it comes back as after any exclusion.
func TestErrorsAloneAreNoAnswers(t *testing.T) {
	for _, f := range []*fault{
		refusal(-32000, "the moon is in the wrong house"), refusal(0, ""), refusal(-32603, "internal error"),
		refusal(-32000, "You have exceeded the RPS limit available on the current plan"),
		refusal(429, "Monthly capacity limit exceeded"), refusal(-32000, "not available on the Free tier"),
		refusal(-32601, "the method does not exist/is not available"),
		{status: http.StatusTooManyRequests, text: "slow down"},
	} {
		synctest.Test(t, func(t *testing.T) {
			nodes, truth := fakes(3, 50)
			c, reg := dialFakes(t, nil, nodes...)
			nodes[0].inject(refuse(f, everything...))
			for range 12 {
				if head, err := c.Head(t.Context()); err != nil || head != truth.ref(49) {
					t.Fatalf("%+v: head %+v, %v", f, head, err)
				}
				time.Sleep(time.Second)
			}
			if seen := detail(c, 0, Everything, ReasonRefusing); !strings.Contains(seen, f.text) || seen == "" ||
				gauge(t, reg, "evm_endpoint_excluded", "http://a/", string(ReasonRefusing)) != 1 {
				t.Errorf("%+v: excluded for %+v", f, c.Endpoints()[0].Excluded)
			}
			nodes[0].inject(nil)
			time.Sleep(c.pool.cfg.Cooldown + 2*c.pool.cfg.ProbeInterval)
			if r := excluded(c, 0, Everything); r != "" {
				t.Errorf("%+v: still excluded for %q", f, r)
			}
		})
	}
}

// The only endpoint is asked on, and readiness says what it answers.
func TestTheOnlyEndpointRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(1, 50)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(refuse(refusal(-32000, "the moon is in the wrong house"), everything...))
		for range 12 {
			if _, err := c.Head(t.Context()); err == nil {
				t.Fatal("a refusal is a head")
			}
			time.Sleep(time.Second)
		}
		if err := c.Health(); err == nil || !strings.Contains(err.Error(), "the moon is in the wrong house") {
			t.Errorf("readiness says %v", err)
		}
		nodes[0].inject(nil)
		if head, err := c.Head(t.Context()); err != nil || head != truth.ref(49) || c.Health() != nil {
			t.Errorf("head %+v, %v; %v", head, err, c.Health())
		}
	})
}

// A kind of false alarm: what nobody serves, as receipts that no node has yet, excludes nobody, and the first who
// serves it shows who does not.
func TestWhatNobodyServesExcludesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, func(cfg *Config) { cfg.ProbeInterval = time.Hour }, nodes...)
		nodes[0].inject(refuse(refusal(-32000, "the moon is away"), methodReceipts))
		nodes[1].inject(refuse(refusal(-32000, "the moon is away"), methodReceipts))
		ask := func() {
			for range 10 {
				for _, e := range c.pool.public {
					_, _ = c.only(e).Receipts(t.Context(), truth.block(40))
				}
				time.Sleep(time.Second)
			}
		}
		ask()
		for at, e := range c.Endpoints() {
			if len(e.Excluded) > 0 {
				t.Errorf("endpoint %d is excluded: %+v", at, e.Excluded)
			}
		}
		nodes[1].inject(nil)
		ask()
		if excluded(c, 0, ForReceipts) != ReasonUnserved || excluded(c, 1, ForReceipts) != "" {
			t.Errorf("excluded: %+v", c.Endpoints())
		}
	})
}

// What one node has a moment later than another is no refusal: it is asked on.
func TestTooEarlyIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, func(cfg *Config) { cfg.ProbeInterval = time.Hour }, nodes...)
		nodes[0].inject(refuse(refusal(-32000, "the receipts of this block are not there yet"), methodReceipts))
		for range 10 {
			for _, e := range c.pool.public {
				_, _ = c.only(e).Receipts(t.Context(), truth.block(40))
			}
			time.Sleep(time.Second)
		}
		if r := excluded(c, 0, ForReceipts); r != "" {
			t.Errorf("excluded for %q", r)
		}
	})
}

// What a node answers about a call or a transaction is an answer, however often in a row; and one that refuses a
// purpose alone is excluded for that alone.
func TestAnswersThatAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, func(cfg *Config) { cfg.ProbeInterval = time.Hour }, nodes...)
		one, other := c.only(c.pool.public[0]), c.only(c.pool.public[1])
		calls := slices.Values([]*fault{refusal(3, "execution reverted: no"), refusal(-32000, "out of gas")})
		for f := range calls {
			nodes[0].inject(refuse(f, methodCall))
			for range 10 {
				if _, err := one.Simulate(t.Context(), chain.Address{1}, venue, nil, 1, chain.Uint{}); err == nil {
					t.Fatal("it succeeded")
				}
				time.Sleep(time.Second)
			}
		}
		nodes[0].inject(refuse(refusal(-32000, "the moon is in the wrong house"), methodSend))
		nodes[1].inject(refuse(refusal(-32000, "nonce too low"), methodSend))
		for range 10 {
			_ = c.SendRaw(t.Context(), []byte{1}) // which is refused
			time.Sleep(time.Second)
		}
		for at, e := range c.Endpoints() {
			if len(e.Excluded) > 0 {
				t.Errorf("endpoint %d is excluded: %+v", at, e.Excluded)
			}
		}
		for _, f := range []*fault{refusal(-32000, "the moon is in the wrong house"), {status: 403, text: "the moon"}} {
			nodes[0].inject(refuse(f, methodReceipts))
			for range 7 {
				_, _ = one.Receipts(t.Context(), truth.block(40))   // which is refused
				_, _ = other.Receipts(t.Context(), truth.block(40)) // which is not
				_, _ = one.Block(t.Context(), truth.ref(40).Hash)   // which is not
				time.Sleep(time.Second)
			}
			if !strings.Contains(detail(c, 0, ForReceipts, ReasonUnserved), "the moon") ||
				excluded(c, 0, Everything) != "" {
				t.Errorf("excluded: %+v", c.Endpoints()[0].Excluded)
			}
			c.pool.public[0].mu.Lock()
			c.pool.public[0].readmit(func(Exclusion) bool { return true })
			c.pool.public[0].mu.Unlock()
			nodes[0].inject(nil)
			if receipts, err := one.Receipts(t.Context(), truth.block(40)); err != nil || len(receipts) != 1 {
				t.Errorf("%d receipts, %v", len(receipts), err)
			}
		}
	})
}

// A status in place of an answer stands in the line that names the endpoint, with what it means; of where a redirect
// points the host alone does, and nobody follows it.
func TestStatusesAreNamed(t *testing.T) {
	for status, want := range map[int]string{
		301: "HTTP 301 Moved Permanently to elsewhere.example (it points elsewhere, and is not followed",
		307: "HTTP 307 Temporary Redirect to elsewhere.example (it points elsewhere",
		401: "HTTP 401 Unauthorized (its key is missing", 402: "HTTP 402 Payment Required (the plan is used up",
		403: "HTTP 403 Forbidden (the key, the plan", 404: "HTTP 404 Not Found (there is no such path",
		503: "HTTP 503 Service Unavailable (the provider is out of order",
	} {
		synctest.Test(t, func(t *testing.T) {
			nodes, _ := fakes(2, 50)
			c, _ := dialFakes(t, nil, nodes...)
			f := &fault{status: status, text: "see /v3/a-secret-key", header: http.Header{}}
			if status < 400 {
				f.header.Set("Location", "http://elsewhere.example/v3/a-secret-key")
			}
			nodes[0].inject(refuse(f, everything...))
			time.Sleep(4 * c.pool.cfg.ProbeInterval)
			seen := detail(c, 0, Everything, ReasonUnreachable)
			if !strings.Contains(seen, want) || status < 400 && strings.Contains(seen, "a-secret-key") {
				t.Errorf("%d: excluded for %+v", status, c.Endpoints()[0].Excluded)
			}
		})
	}
}

// A WebSocket whose handshake is refused names the status as well.
func TestStatusOfAHandshakeIsNamed(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer gateway.Close()
	cfg := DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL("ws" + strings.TrimPrefix(gateway.URL, "http"))}
	c, err := Dial(t.Context(), fakeChainID, cfg, zerolog.Nop(), newMetricsForTest())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		_, _ = c.Head(t.Context()) // which nobody answers
	}
	if seen := detail(c, 0, Everything, ReasonUnreachable); !strings.Contains(seen, "HTTP status 403 Forbidden") {
		t.Errorf("excluded for %+v", c.Endpoints()[0].Excluded)
	}
}
