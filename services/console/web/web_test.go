package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/embedded/broker"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/wire"
	"perpkeeper/services/console/doctor"
	"perpkeeper/services/console/signin"
	"perpkeeper/services/console/web"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const password = "correct horse battery"

// site is a console with a database and topics of its own, and users of each role.
type site struct {
	*httptest.Server

	t      testing.TB
	db     *pg.DB
	client *bus.Client
	deps   web.Deps
	users  *signin.Users
}

// One broker is enough for all sites: each has a chain, and so topics, of its own.
var (
	sharedBroker = sync.OnceValues(func() (*broker.Broker, error) { return broker.Start(broker.Config{}) })
	chains       atomic.Uint64
)

func newSite(t testing.TB, change ...func(*web.Deps)) *site {
	t.Helper()
	b, err := sharedBroker()
	if err != nil {
		t.Fatal(err)
	}
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{b.Addr()}
	client, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &site{t: t, db: pgtest.DB(t), client: client}
	keeper := wire.DefaultConfig()
	keeper.ChainID = chains.Add(1) // topics of its own
	if err := client.Ensure(t.Context(), bus.Specs(keeper.Topics()...)); err != nil {
		t.Fatal(err)
	}
	if s.users, err = signin.OpenUsers(filepath.Join(t.TempDir(), "users")); err != nil {
		t.Fatal(err)
	}
	for name, role := range map[string]signin.Role{"vera": signin.Viewer, "otto": signin.Operator,
		"anna": signin.Admin} {
		s.must(s.users.Add(signin.User{Name: name, Role: role, Hash: hashed()}))
	}
	s.deps = web.Deps{DB: s.db, Kafka: client, Authority: signin.NewAuthority(s.users, time.Now), Keeper: keeper,
		Tier: tier.DefaultConfig(), PriceMaxAge: 30 * time.Second, VolatilityWindow: time.Minute,
		Doctor: &doctor.Doctor{Now: time.Now}, Log: zerolog.Nop(), Now: time.Now}
	for _, c := range change {
		c(&s.deps)
	}
	ctx, stop := context.WithCancel(t.Context())
	handler, err := web.New(ctx, s.deps)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(handler)
	t.Cleanup(func() { stop(); s.Server.CloseClientConnections(); s.Server.Close() })
	return s
}

var made = signin.Hash(password)

func hashed() string { return made }

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// browser keeps cookies and follows redirects.
type browser struct {
	*site

	http.Client
}

func (s *site) browser() *browser {
	jar, err := cookiejar.New(nil)
	s.must(err)
	return &browser{s, http.Client{Jar: jar}}
}

// as is a browser whose user has signed in.
func (s *site) as(name string) *browser {
	s.t.Helper()
	b := s.browser()
	if status, page := b.post("/signin", "/signin",
		url.Values{"name": {name}, "password": {password}}); status != http.StatusOK ||
		!strings.Contains(page, name) {
		s.t.Fatalf("%s is not signed in: %d\n%s", name, status, page)
	}
	return b
}

func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	answer, err := b.Client.Get(b.URL + path)
	b.must(err)
	return b.read(answer)
}

func (b *browser) read(answer *http.Response) (int, string) {
	b.t.Helper()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	b.must(err)
	return answer.StatusCode, string(text)
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]*)"`)

// post sends a form with the token that stands in a page.
func (b *browser) post(from, to string, fields url.Values) (int, string) {
	b.t.Helper()
	_, page := b.get(from)
	if token := csrfField.FindStringSubmatch(page); token != nil && !fields.Has("csrf") {
		fields.Set("csrf", token[1])
	}
	answer, err := b.PostForm(b.URL+to, fields)
	b.must(err)
	return b.read(answer)
}

// paths are all pages that anybody signed in may see.
var paths = []string{"/", "/jobs", "/jobs?show=waiting", "/jobs?show=flight", "/jobs?show=ended&outcome=refused",
	"/jobs?kind=liquidation", "/job", "/signers", "/delayed", "/delayed?status=parked", "/deadletters", "/generations",
	"/audit", "/doctor", "/market", "/pnl", "/pnl?period=week&by=market"}

// No page breaks with an empty database, and none is shown to who is not signed in.
func TestPagesOfAnEmptyKeeper(t *testing.T) {
	s := newSite(t)
	stranger := s.browser()
	anna := s.as("anna")
	for _, path := range append(paths, "/sessions") {
		if status, page := anna.get(path); status != http.StatusOK || strings.Contains(page, "cannot be read") ||
			!strings.Contains(page, "</html>") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
		if _, page := stranger.get(path); !strings.Contains(page, `action="/signin"`) {
			t.Errorf("%s is shown to a stranger", path)
		}
	}
	if status, page := anna.get("/positions"); status != http.StatusOK && status != http.StatusServiceUnavailable ||
		!strings.Contains(page, "</html>") { // a keeper without a state has none
		t.Errorf("positions: %d\n%s", status, page)
	}
	if status, _ := stranger.get("/live?page=/jobs"); status != http.StatusUnauthorized {
		t.Errorf("a stranger may watch: %d", status)
	}
	if status, _ := anna.get("/job?id=nonsense"); status != http.StatusBadRequest {
		t.Errorf("what is no job: %d", status)
	}
	if status, _ := anna.get("/job?id=0x" + strings.Repeat("77", 32)); status != http.StatusNotFound {
		t.Errorf("a job that nobody knows: %d", status)
	}
}

// The list of jobs is filtered by each kind there is, and offers it.
func TestJobsOfEveryKind(t *testing.T) {
	anna := newSite(t).as("anna")
	for _, kind := range job.Kinds() {
		status, page := anna.get("/jobs?kind=" + string(kind))
		if offered := fmt.Sprintf("<option value=%q selected>", kind); status != http.StatusOK ||
			!strings.Contains(page, offered) {
			t.Errorf("%s: %d, and the page has no %s", kind, status, offered)
		}
	}
}

// Where the database is away, pages say so in their place.
func TestPagesWithoutAStore(t *testing.T) {
	s := newSite(t)
	anna := s.as("anna")
	s.db.Close()
	for _, path := range []string{"/jobs", "/signers", "/delayed", "/audit"} {
		if status, page := anna.get(path); status != http.StatusServiceUnavailable ||
			!strings.Contains(page, "cannot be read now") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
	}
	if status, page := anna.get("/"); status != http.StatusOK || !strings.Contains(page, "not reached") {
		t.Errorf("the overview: %d\n%s", status, page)
	}
}

func TestHeaders(t *testing.T) {
	for _, tls := range []bool{false, true} {
		s := newSite(t, func(d *web.Deps) { d.TLS = tls })
		answer, err := http.Get(s.URL + "/signin")
		s.must(err)
		_ = answer.Body.Close()
		h := answer.Header
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("policy %q", csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", h)
		}
		if got := h.Get("Strict-Transport-Security") != ""; got != tls {
			t.Errorf("TLS %v, and HSTS %v", tls, got)
		}
		c := answer.Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != tls ||
			strings.HasPrefix(c.Name, "__Host-") != tls || c.Domain != "" || c.Path != "/" {
			t.Errorf("TLS %v, and the cookie is %s", tls, c)
		}
	}
}

// Whatever pages are written from, none has script or style in it: the policy would refuse it.
func TestNoInlineScriptOrStyle(t *testing.T) {
	s := newSite(t)
	anna := s.as("anna")
	inline := regexp.MustCompile(`(?i)<script(?:>| [^>]*[^-]>[^<])|<style|\sstyle=|\son[a-z]+=|javascript:`)
	for _, path := range append(paths, "/sessions", "/act?do=delayed-run") {
		if _, page := anna.get(path); inline.MatchString(page) {
			t.Errorf("%s: %q", path, inline.FindString(page))
		}
	}
}

func TestFirstStart(t *testing.T) {
	s := newSite(t, func(d *web.Deps) {
		empty, err := signin.OpenUsers(filepath.Join(t.TempDir(), "nobody"))
		if err != nil {
			t.Fatal(err)
		}
		d.Authority = signin.NewAuthority(empty, time.Now)
	})
	token, err := s.deps.Authority.First()
	s.must(err)
	b := s.browser()
	if status, page := b.get("/welcome?token=guess"); status != http.StatusForbidden ||
		strings.Contains(page, "<form") {
		t.Errorf("a guessed link: %d\n%s", status, page)
	}
	link := "/welcome?token=" + token
	fields := url.Values{"token": {token}, "name": {"root"}, "password": {password}, "again": {password + "!"}}
	if status, _ := b.post(link, "/welcome", fields); status != http.StatusBadRequest {
		t.Errorf("two different passwords: %d", status)
	}
	fields.Set("again", password)
	if status, page := b.post(link, "/welcome", fields); status != http.StatusOK ||
		!strings.Contains(page, "Overview") {
		t.Fatalf("the first user: %d\n%s", status, page)
	}
	if _, page := s.browser().get(link); strings.Contains(page, "<form") {
		t.Error("the link is used twice")
	}
}

func TestSignInIsRefused(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	if status, page := b.post("/signin", "/signin",
		url.Values{"name": {`"><b>`}, "password": {"wrong"}}); status != http.StatusUnauthorized ||
		strings.Contains(page, "<b>") {
		t.Errorf("%d\n%s", status, page)
	}
	fields := url.Values{"name": {"anna"}, "password": {password}, "csrf": {"forged"}}
	if status, _ := b.post("/signin", "/signin", fields); status != http.StatusForbidden {
		t.Errorf("a forged form: %d", status)
	}
	fields = url.Values{"name": {"anna"}, "password": {"wrong"}}
	for range 10 {
		b.post("/signin", "/signin", fields)
	}
	if status, _ := b.post("/signin", "/signin",
		url.Values{"name": {"anna"}, "password": {password}}); status != http.StatusTooManyRequests {
		t.Errorf("after ten wrong passwords: %d", status)
	}
	anna := s.as("vera")
	if status, page := anna.post("/", "/signout", url.Values{}); status != http.StatusOK ||
		!strings.Contains(page, "Password") {
		t.Errorf("signed out: %d\n%s", status, page)
	}
}
