package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// The link signs in whoever has it, and nobody else; while the console is away it says so.
func TestTheLinkSignsIn(t *testing.T) {
	var signed atomic.Int64
	console := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, err := r.Cookie("perpkeeper_form")
		if err != nil || r.URL.Path != "/signin" || r.PostFormValue("csrf") != form.Value ||
			r.PostFormValue("name") != consoleUser || r.PostFormValue("password") != "secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		signed.Add(1)
		http.SetCookie(w, &http.Cookie{Name: "perpkeeper_session", Value: "1"})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}))
	defer console.Close()
	k := &Keeper{stack: &Stack{}, Processes: []*Process{{Name: "console", HTTP: strings.TrimPrefix(console.URL, "http://")}}}
	ctx, stop := context.WithCancel(t.Context())
	defer k.stack.running.Wait()
	defer stop()
	if err := k.openDoor(ctx, "secret"); err != nil {
		t.Fatal(err)
	}
	open := func(link string) *http.Response {
		t.Helper()
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(ask)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	got := open(k.ConsoleLink)
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != console.URL || len(got.Cookies()) != 1 ||
		got.Cookies()[0].Name != "perpkeeper_session" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	if got := open(k.ConsoleLink + "x"); got.StatusCode != http.StatusNotFound || signed.Load() != 1 {
		t.Errorf("who does not know the link is answered %d; %d were signed in", got.StatusCode, signed.Load())
	}
	console.Close()
	if got := open(k.ConsoleLink); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Refresh") == "" {
		t.Errorf("without the console: %d %v", got.StatusCode, got.Header)
	}
}
