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
	k := &Keeper{stack: &Stack{}, Processes: []*Process{{Name: "console",
		HTTP: strings.TrimPrefix(console.URL, "http://")}}}
	ctx, stop := context.WithCancel(t.Context())
	defer k.stack.running.Wait()
	defer stop()
	if err := k.openDoor(ctx, "secret"); err != nil {
		t.Fatal(err)
	}
	open := func(link string) (int, http.Header) {
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
		return answer.StatusCode, answer.Header
	}
	status, told := open(k.ConsoleLink)
	if cookies := strings.Join(told["Set-Cookie"], "; "); status != http.StatusSeeOther ||
		told.Get("Location") != console.URL || cookies != "perpkeeper_session=1" ||
		told.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", status, told)
	}
	if status, _ := open(k.ConsoleLink + "x"); status != http.StatusNotFound || signed.Load() != 1 {
		t.Errorf("who does not know the link is answered %d; %d were signed in", status, signed.Load())
	}
	console.Close()
	if status, told := open(k.ConsoleLink); status != http.StatusServiceUnavailable || told.Get("Refresh") == "" {
		t.Errorf("without the console: %d %v", status, told)
	}
}
