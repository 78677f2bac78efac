package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/bcrypt"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/naming/namingtest"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/services/console/signin"
	"perpkeeper/services/console/web"
	"perpkeeper/test/rig"
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
	client := rig.Kafka(t, cfg)
	s := &site{t: t, db: pgtest.DB(t), client: client}
	keeper := wire.DefaultConfig()
	keeper.ChainID = chains.Add(1) // topics of its own
	rig.Ensure(t, client, keeper.Topics()...)
	file := filepath.Join(t.TempDir(), "users")
	lines := fmt.Appendf(nil, "vera viewer %[1]s\notto operator %[1]s\nanna operator %[1]s\n", hash)
	s.must(os.WriteFile(file, lines, 0o600))
	users, err := signin.OpenUsers(file)
	s.must(err)
	s.deps = web.Deps{DB: s.db, Kafka: client, Names: naming.New(namingtest.Node{}, s.db),
		Authority: signin.NewAuthority(users, time.Now), Keeper: keeper,
		Tier: tier.DefaultConfig(), PriceMaxAge: 30 * time.Second, VolatilityWindow: time.Minute,
		Log: zerolog.Nop(), Now: time.Now}
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

var hash, _ = bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)

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
var paths = []string{"/", "/jobs", "/jobs?show=waiting", "/jobs?show=in_flight", "/jobs?show=ended&outcome=refused",
	"/jobs?kind=liquidation", "/job", "/signers", "/delayed", "/delayed?status=parked", "/deadletters",
	"/audit", "/market", "/pnl", "/pnl?period=week&by=market"}

// No page breaks with an empty database, and none is shown to who is not signed in.
func TestPagesOfAnEmptyKeeper(t *testing.T) {
	s := newSite(t)
	stranger := s.browser()
	anna := s.as("anna")
	for _, path := range paths {
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
	if status, _ := anna.get("/job?id=nonsense"); status != http.StatusBadRequest {
		t.Errorf("what is no job: %d", status)
	}
	if status, _ := anna.get("/job?id=0x" + strings.Repeat("77", 32)); status != http.StatusNotFound {
		t.Errorf("a job that nobody knows: %d", status)
	}
}

// What has landed before the console began is drawn: how old jobs were, who executed them, what gas was paid.
func TestPagesHoldPictures(t *testing.T) {
	d := txstoretest.New(t, 1)
	r := txm.Receipt{TxHash: d.MustClaim(t, d.Intents[0], 0, 0).Hash, Block: chain.BlockRef{Number: 1,
		Hash: chain.Hash{1}}, Outcome: job.Done, OK: true, GasUsed: 21_000, GasPrice: 5_000_000_000}
	if err := txstore.NewIntents(d.DB).Record(t.Context(), d.Fence, r); err != nil {
		t.Fatal(err)
	}
	anna := newSite(t, func(deps *web.Deps) { deps.DB = d.DB }).as("anna")
	page := anna.awaitPage("/", `<rect class="t1 k2"`)
	for _, want := range []string{`<svg class="spark" role="img" aria-label="Inclusion, `, "p50 ",
		"this keeper, orders <b>1</b>"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if page := anna.awaitPage("/signers", "What gas costs"); !strings.Contains(page, "<b>5 Gwei</b>") {
		t.Errorf("what was paid is not there:\n%s", page)
	}
}

// The list of jobs is filtered by each kind there is, and offers it.
func TestJobsOfEveryKind(t *testing.T) {
	anna := newSite(t).as("anna")
	for _, kind := range slices.Concat(job.Kinds(), job.Cancels()) {
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
	for _, path := range append(paths, "/act?do=delayed-run") {
		if _, page := anna.get(path); inline.MatchString(page) {
			t.Errorf("%s: %q", path, inline.FindString(page))
		}
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
	anna := s.as("vera")
	if status, page := anna.post("/", "/signout", url.Values{}); status != http.StatusOK ||
		!strings.Contains(page, "Password") {
		t.Errorf("signed out: %d\n%s", status, page)
	}
}

// Behind a proxy every browser has the proxy's address. What a trusted one says of whom it heard from is believed, and
// nothing that somebody before it has written.
func TestAddressesBehindAProxy(t *testing.T) {
	for name, c := range map[string]struct {
		proxies []netip.Prefix
		heard   []string
		want    string
	}{
		"no proxy":             {nil, []string{"203.0.113.7"}, "127.0.0.1"},
		"one":                  {loopback, []string{"203.0.113.7"}, "203.0.113.7"},
		"one that was lied to": {loopback, []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		"two":                  {loopback, []string{"203.0.113.7", "127.0.0.2"}, "203.0.113.7"},
		"nonsense":             {loopback, []string{"unknown"}, "127.0.0.1"},
		"nothing":              {loopback, nil, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(d *web.Deps) { d.Proxies = c.proxies })
			b := s.browser()
			b.Transport = forwarder{c.heard}
			b.post("/signin", "/signin", url.Values{"name": {"anna"}, "password": {password}})
			entries, err := s.db.ConsoleActions().List(t.Context(), 0, 1)
			s.must(err)
			if len(entries) != 1 || entries[0].Address != c.want {
				t.Errorf("%+v; want %s", entries, c.want)
			}
		})
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// forwarder is a proxy that heard from somebody.
type forwarder struct{ heard []string }

func (f forwarder) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header["X-Forwarded-For"] = f.heard
	return http.DefaultTransport.RoundTrip(r)
}
