package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/service"
)

// client keeps no connections, which would outlive the test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// get asks for one page.
func get(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// serve runs a shell with HTTP around a start function until the test ends. It returns once the start has ended for the
// shell too, so that its own condition holds.
func serve(t *testing.T, o service.Options, fn func(*service.Shell)) *service.Shell {
	t.Helper()
	started := make(chan *service.Shell)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- service.Run(ctx, o, func(sh *service.Shell) error {
			fn(sh)
			sh.Go("loop", func(ctx context.Context) error {
				started <- sh
				return untilStopped(ctx)
			})
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case sh := <-started:
		for own := "process: starting"; strings.Contains(own, "process: starting"); {
			_, own = get(t, sh.Addr(), "/readyz")
		}
		return sh
	case err := <-ended:
		ended <- nil
		t.Fatalf("not started: %v", err)
		return nil
	}
}

func loopback() service.Options {
	return service.Options{Name: "scanner", Log: zerolog.Nop(),
		HTTP: service.HTTPSettings{Listen: "127.0.0.1:0"}}
}

func TestReadyzNamesEveryFailingCondition(t *testing.T) {
	var kafka, head *service.Condition
	sh := serve(t, loopback(), func(sh *service.Shell) { kafka, head = sh.Ready("kafka"), sh.Ready("head") })
	want := func(status int, body string) {
		t.Helper()
		if gotStatus, gotBody := get(t, sh.Addr(), "/readyz"); gotStatus != status || gotBody != body {
			t.Errorf("readyz answers %d %q, want %d %q", gotStatus, gotBody, status, body)
		}
	}
	want(503, "kafka: starting\nhead: starting\n")
	kafka.OK()
	head.Fail("lag of 12 blocks")
	want(503, "head: lag of 12 blocks\n")
	if _, body := get(t, sh.Addr(), "/metrics"); !strings.Contains(body, "perpkeeper_ready{condition=") {
		t.Errorf("no metric says what /readyz says: %s", body)
	}
	head.OK()
	kafka.Note("one broker\nis all there is")
	want(200, "ok\nnote: kafka: one broker; is all there is\n")
	kafka.Note("")
	want(200, "ok\n")
	if sh.Ready("head") != head {
		t.Error("a condition asked for twice is two")
	}
	head.OK()
	want(200, "ok\n")
	kafka.Fail("")
	want(503, "kafka: failing\n")
	kafka.Fail("none of these:\n\ta: refused\n\ta: refused\n\tb: refused\n")
	want(503, "kafka: none of these: a: refused; b: refused\n")
}

// A process is not ready before its start function has returned, nor once it is stopping; it answers in both states.
func TestReadyzBeforeAndAfter(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := service.Run(ctx, loopback(), func(sh *service.Shell) error {
		if status, body := get(t, sh.Addr(), "/readyz"); status != 503 || body != "process: starting\n" {
			t.Errorf("while starting: %d %q", status, body)
		}
		sh.OnStop("look", func(context.Context) error {
			if status, body := get(t, sh.Addr(), "/readyz"); status != 503 || body != "process: stopping\n" {
				t.Errorf("while stopping: %d %q", status, body)
			}
			if status, _ := get(t, sh.Addr(), "/livez"); status != 200 {
				t.Errorf("while stopping livez answers %d", status)
			}
			return nil
		})
		cancel()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPages(t *testing.T) {
	sh := serve(t, loopback(), func(sh *service.Shell) {
		sh.Registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "perpkeeper_scanner_heads_total",
			Help: "New heads seen."}))
		sh.Handle("GET /status", http.NotFoundHandler())
	})
	for path, parts := range map[string][]string{
		"/livez": {"ok\n"},
		"/metrics": {"perpkeeper_scanner_heads_total 0", `perpkeeper_build_info{go="go`,
			`service="scanner"`, "go_goroutines", "process_open_fds"},
	} {
		status, body := get(t, sh.Addr(), path)
		for _, part := range parts {
			if status != 200 || !strings.Contains(body, part) {
				t.Errorf("%s answers %d without %q:\n%.300s", path, status, part, body)
			}
		}
	}
	_, body := get(t, sh.Addr(), "/version")
	var build service.Build
	if err := json.Unmarshal([]byte(body), &build); err != nil || build != service.ReadBuild("scanner") ||
		build.Version == "" {
		t.Errorf("version answers %s", body)
	}
	if status, _ := get(t, sh.Addr(), "/status"); status != 404 {
		t.Errorf("the service's own page answers %d", status)
	}
}

// A kind of leak: a proxy that hands a process's pages on hands its memory on. Profiles are on a port of their own.
func TestProfilesAreOnNoOtherPort(t *testing.T) {
	o := loopback()
	o.HTTP.PProf = "127.0.0.1:0"
	with, without := serve(t, o, func(*service.Shell) {}), serve(t, loopback(), func(*service.Shell) {})
	for path, part := range map[string]string{"/debug/pprof/": "heap", "/debug/pprof/cmdline": "service.test",
		"/debug/pprof/heap?debug=1": "heap profile"} {
		if status, body := get(t, with.Profiles(), path); status != 200 || !strings.Contains(body, part) {
			t.Errorf("%s answers %d without %q:\n%.300s", path, status, part, body)
		}
		for _, sh := range []*service.Shell{with, without} {
			if status, _ := get(t, sh.Addr(), path); status != 404 {
				t.Errorf("%s beside the pages answers %d", path, status)
			}
		}
	}
	if without.Profiles() != "" {
		t.Errorf("unasked, profiles are at %s", without.Profiles())
	}
}

func TestAddressThatCannotBeHad(t *testing.T) {
	o := loopback()
	o.HTTP.Listen = "192.0.2.1:80" // Set aside for documentation: no machine has it.
	err := service.Run(t.Context(), o, func(*service.Shell) error { return errors.New("started") })
	if err == nil ||
		err.Error() != "listening on 192.0.2.1:80: bind: cannot assign requested address (set http.listen)" {
		t.Errorf("got %v", err)
	}
}

// ask opens a page of a shell that is being stopped, and returns once the page is being served; the channel tells how
// the request ends.
func ask(sh *service.Shell, page func(r *http.Request)) <-chan error {
	asked, ended := make(chan struct{}), make(chan error, 1)
	sh.Handle("GET /slow", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		page(r)
	}))
	go func() {
		resp, err := client.Get("http://" + sh.Addr() + "/slow")
		if err == nil {
			resp.Body.Close()
		}
		ended <- err
	}()
	<-asked
	return ended
}

// A page that streams learns from its context that the process stops; one that ignores it is cut off. Neither is a
// failure.
func TestStopEndsOpenPages(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for name, page := range map[string]func(*http.Request){
		"streams": func(r *http.Request) { <-r.Context().Done() },
		"hangs":   func(*http.Request) { <-release },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var ended <-chan error
		err := service.Run(ctx, loopback(), func(sh *service.Shell) error {
			ended = ask(sh, page)
			cancel()
			return nil
		})
		if err != nil {
			t.Errorf("%s: the stop fails: %v", name, err)
		}
		if err := <-ended; (err != nil) != (name == "hangs") {
			t.Errorf("%s: the request ends with %v", name, err)
		}
	}
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestPanicOfAPageIsLogged(t *testing.T) {
	var log lockedBuffer
	o := loopback()
	o.Log = zerolog.New(&log)
	sh := serve(t, o, func(sh *service.Shell) {
		sh.Handle("GET /broken", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	})
	resp, err := client.Get("http://" + sh.Addr() + "/broken")
	if err == nil {
		resp.Body.Close()
		t.Fatalf("the broken page answers %s", resp.Status)
	}
	if got := log.String(); !strings.Contains(got, "http: panic serving") || !strings.Contains(got, "boom") {
		t.Errorf("logged %s", got)
	}
}

func TestConditionsLogChangesOnly(t *testing.T) {
	var log lockedBuffer
	err := service.Run(t.Context(), service.Options{Name: "scanner", Log: zerolog.New(&log)},
		func(sh *service.Shell) error {
			c := sh.Ready("kafka")
			for range 3 {
				c.Fail("no broker")
			}
			for range 3 {
				c.OK()
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), `"condition":"kafka"`); got != 2 {
		t.Errorf("logged %d times:\n%s", got, log.String())
	}
}
