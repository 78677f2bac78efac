package webhook

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

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/setting/secret"
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
	r.bodies, r.signed = append(r.bodies, body), append(r.signed, q.Header.Get(signatureHeader))
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

// open is the way to a receiver that has 200 ms for an answer.
func open(r *receiver) notify.Notifier {
	c := Config{URL: secret.MustURL(r.URL + "/hook/token-of-the-receiver"), Secret: secret.New(key)}
	return c.Open(200 * time.Millisecond)
}

var policy = notify.Policy{Attempts: 3, FirstPause: time.Millisecond, LongPause: 2 * time.Millisecond}

func quiet(int, error, time.Duration) {}

// LIQ-12: a receiver that hangs up, hangs, and answers with failures gets the message in the end, the same each time,
// signed for the moment of posting.
func TestDeliverUntilTaken(t *testing.T) {
	r := newReceiver(t, cut, hang, cut, cut, status(http.StatusInternalServerError), cut,
		status(http.StatusTooManyRequests), hang, status(http.StatusOK))
	p := open(r)
	m := notify.Message{ID: "a#1", Event: notify.PositionLiquidated, ChainID: 56}
	failures := 0
	if err := policy.Deliver(t.Context(), p, m, func(int, error, time.Duration) { failures++ }); err != nil {
		t.Fatal(err)
	}
	if failures < 8 || len(r.bodies) < 9 { // the transport itself repeats what was cut before an answer, now and then
		t.Errorf("%d failures, %d postings", failures, len(r.bodies))
	}
	for i, body := range r.bodies {
		var got notify.Message
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
	p := open(r)
	var texts []string
	note := func(_ int, err error, _ time.Duration) { texts = append(texts, err.Error()) }
	err := policy.Deliver(t.Context(), p, notify.Message{ID: "a#1"}, note)
	refused, is := errors.AsType[*notify.RefusedError](err)
	if !is || refused.Status != 500 || !strings.Contains(refused.Error(), "as told") {
		t.Errorf("gave up with %v", err)
	}
	r.Close()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("enough"))
	defer cancel()
	err = policy.Deliver(ctx, p, notify.Message{ID: "a#1"}, note)
	if _, is := errors.AsType[*notify.RefusedError](err); err == nil || is || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a receiver that is away: %v", err)
	}
	for _, text := range append(texts, err.Error()) {
		if strings.Contains(text, "token-of-the-receiver") {
			t.Errorf("the URL is shown: %s", text)
		}
	}
}

// echo refuses with a page that says what was asked for, as many servers' do.
func echo(w http.ResponseWriter, q *http.Request) {
	http.Error(w, "<pre>Cannot POST "+q.RequestURI+"</pre>", http.StatusNotFound)
}

// A server that repeats the address gets no token into an error, which ends in logs and among the dead letters.
func TestRefusalsHideTheAddress(t *testing.T) {
	r := newReceiver(t, echo, echo)
	for _, address := range []string{"/hook/a-token%20of/the-receiver", "/?key=a-token"} {
		n := Config{URL: secret.MustURL(r.URL + address), Secret: secret.New(key)}.Open(5 * time.Second)
		err := n.Notify(t.Context(), notify.Message{ID: "a#1"})
		if refused, is := errors.AsType[*notify.RefusedError](err); !is || strings.Contains(refused.Body, "token") ||
			!strings.Contains(refused.Body, "Cannot POST ***</pre>") {
			t.Errorf("refused with %v", err)
		}
	}
}

// A signed message is for one receiver.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := newReceiver(t)
	r := newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
	})
	p := open(r)
	if err := policy.Deliver(t.Context(), p, notify.Message{ID: "a#1"}, quiet); err != nil || len(other.bodies) != 0 ||
		len(r.bodies) != 2 {
		t.Errorf("%v; %d went elsewhere, %d here", err, len(other.bodies), len(r.bodies))
	}
}
