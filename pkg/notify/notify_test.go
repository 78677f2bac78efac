package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/secret"
)

const key = "an hour of sunshine"

// receiver answers each posting as it is told to, and keeps what it was posted.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	answers []func(http.ResponseWriter, *http.Request)
	bodies  [][]byte
	signed  []string
}

func newReceiver(t *testing.T, answers ...func(http.ResponseWriter, *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answers: answers}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	r.bodies, r.signed = append(r.bodies, body), append(r.signed, q.Header.Get(SignatureHeader))
	answer := status(http.StatusNoContent)
	if len(r.answers) > 0 {
		answer, r.answers = r.answers[0], r.answers[1:]
	}
	r.mu.Unlock()
	answer(w, q)
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "as told", code) }
}

// hang answers nothing until the caller has gone.
func hang(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }

// cut ends the connection in the middle.
func cut(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func configFor(r *receiver) Config {
	c := DefaultConfig()
	c.OwnerURL, c.Secret = secret.MustURL(r.URL+"/hook/token-of-the-receiver"), secret.New(key)
	c.Timeout, c.FirstPause, c.LongPause, c.Attempts = 200*time.Millisecond, time.Millisecond, 2*time.Millisecond, 3
	return c
}

func quiet(int, error, time.Duration) {}

// LIQ-12: a receiver that hangs up, hangs, and answers with failures gets the message in the end, the same each time,
// signed for the moment of posting.
func TestDeliverUntilTaken(t *testing.T) {
	r := newReceiver(t, cut, hang, cut, cut, status(http.StatusInternalServerError), cut,
		status(http.StatusTooManyRequests), hang, status(http.StatusOK))
	p := NewPoster(configFor(r), Owner)
	defer p.Close()
	m := Message{ID: "a#1", Event: PositionLiquidated, ChainID: 56}
	failures := 0
	if err := p.Deliver(t.Context(), m, func(int, error, time.Duration) { failures++ }); err != nil {
		t.Fatal(err)
	}
	if failures < 8 || len(r.bodies) < 9 { // the transport itself repeats what was cut before an answer, now and then
		t.Errorf("%d failures, %d postings", failures, len(r.bodies))
	}
	for i, body := range r.bodies {
		var got Message
		if err := json.Unmarshal(body, &got); err != nil || got != m {
			t.Errorf("posting %d: %s, %v", i, body, err)
		}
		var at int64
		var mac string
		if n, err := fmt.Sscanf(r.signed[i], "t=%d,v1=%s", &at, &mac); n != 2 || err != nil {
			t.Fatalf("posting %d is signed %q", i, r.signed[i])
		}
		h := hmac.New(sha256.New, []byte(key))
		_, _ = fmt.Fprintf(h, "%d.%s", at, body)
		if want := hex.EncodeToString(h.Sum(nil)); mac != want {
			t.Errorf("posting %d is signed %s, want %s", i, mac, want)
		}
	}
}

// Refusals are bounded; a receiver that is away is not given up. No error shows the URL.
func TestDeliverGivesUp(t *testing.T) {
	r := newReceiver(t, status(400), cut, status(404), status(500))
	p := NewPoster(configFor(r), Owner)
	defer p.Close()
	var texts []string
	note := func(_ int, err error, _ time.Duration) { texts = append(texts, err.Error()) }
	err := p.Deliver(t.Context(), Message{ID: "a#1"}, note)
	refused, is := errors.AsType[*RefusedError](err)
	if !is || refused.Status != 500 || !strings.Contains(refused.Error(), "as told") {
		t.Errorf("gave up with %v", err)
	}
	r.Close()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("enough"))
	defer cancel()
	err = p.Deliver(ctx, Message{ID: "a#1"}, note)
	if _, is := errors.AsType[*RefusedError](err); err == nil || is || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a receiver that is away: %v", err)
	}
	for _, text := range append(texts, err.Error()) {
		if strings.Contains(text, "token-of-the-receiver") {
			t.Errorf("the URL is shown: %s", text)
		}
	}
}

// A signed message is for one receiver.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := newReceiver(t)
	r := newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
	})
	p := NewPoster(configFor(r), Owner)
	defer p.Close()
	if err := p.Deliver(t.Context(), Message{ID: "a#1"}, quiet); err != nil || len(other.bodies) != 0 ||
		len(r.bodies) != 2 {
		t.Errorf("%v; %d went elsewhere, %d here", err, len(other.bodies), len(r.bodies))
	}
}

// LIQ-12: the owner is told of a liquidation, the operator of one that was given up, and nobody of anything else.
func TestAbout(t *testing.T) {
	r := job.Result{
		JobID: "liquidation:x:1", Arm: 2, Kind: job.Liquidation, Key: chain.Hash{1}, Account: chain.Address{2},
		Outcome: job.Done, TxHash: chain.Hash{3},
		Signer: chain.Address{4}, Block: chain.BlockRef{Number: 5}, AtMs: 6, Market: chain.Address{7},
		Collateral: chain.Address{8}, IsLong: true,
		Settlement: &job.Settlement{SizeDeltaUsd: perp.Pow10(34),
			Returned: []job.Payment{{Token: chain.Address{8}, Amount: perp.U64(9)}}},
	}
	want := Message{ID: "liquidation:x:1#2", Event: PositionLiquidated, ChainID: 56, AtMs: 6, Liquidation: &Liquidation{
		Job: r.JobID, Arm: 2, Position: r.Key.Hex(), Account: r.Account.Hex(), Market: r.Market.Hex(),
		Collateral: r.Collateral.Hex(), IsLong: true,
		Outcome: "executed", TxHash: r.TxHash.Hex(), Block: 5, Signer: r.Signer.Hex(), Settlement: r.Settlement,
	}}
	m, to, concerns := About(56, r)
	if got := *m.Liquidation; !concerns || to != Owner || got != *want.Liquidation || m.ID != want.ID ||
		m.Event != want.Event || m.AtMs != 6 || m.ChainID != 56 {
		t.Errorf("%t, to %s: %+v", concerns, to, m)
	}
	body, err := json.Marshal(m)
	if err != nil || !strings.Contains(string(body), `"size_delta_usd":"10000000000000000000000000000000000"`) ||
		!strings.Contains(string(body),
			`"returned":[{"token":"0x0800000000000000000000000000000000000000","amount":"9"}]`) {
		t.Errorf("%s, %v", body, err)
	}
	r.Kind = job.Adl
	if m, to, concerns = About(56, r); !concerns || to != Owner || m.Event != PositionDeleveraged ||
		m.Liquidation.Settlement != r.Settlement {
		t.Errorf("%t, to %s: %+v", concerns, to, m)
	}
	r.Kind = job.Liquidation
	r.Outcome, r.GivenUp, r.Reason, r.TxHash, r.Settlement = job.Reverted, true, "why", chain.Hash{}, nil
	if m, to, concerns = About(56, r); !concerns || to != Operator || m.Event != LiquidationFailed ||
		m.Liquidation.TxHash != "" || m.Liquidation.Reason != "why" {
		t.Errorf("%t, to %s: %+v", concerns, to, m)
	}
	for what, change := range map[string]func(*job.Result){
		"a lost race":              func(r *job.Result) { r.Outcome, r.GivenUp = job.LostRace, false },
		"a failure before another": func(r *job.Result) { r.GivenUp = false },
		"a failed deleveraging":    func(r *job.Result) { r.Kind = job.Adl },
		"an order":                 func(r *job.Result) { r.Kind, r.Outcome = job.Order, job.Done },
	} {
		other := r
		change(&other)
		if _, _, concerns := About(56, other); concerns {
			t.Errorf("somebody is told of %s", what)
		}
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	c := DefaultConfig()
	c.OperatorURL, c.Secret, c.Attempts, c.Timeout = secret.MustURL("https://user:token@example.org/hook"),
		secret.New("short"), 0, 0
	err := c.Validate()
	for _, want := range []string{"secret: has fewer than 16 characters", "attempts: 0", "timeout: 0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if shown := fmt.Sprintf("%+v", c); strings.Contains(shown, "short") || strings.Contains(shown, "token") {
		t.Errorf("secrets are shown: %s", shown)
	}
}
