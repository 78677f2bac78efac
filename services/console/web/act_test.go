package web_test

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// hostile is what a contract, an endpoint or somebody's reason may hold.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>` + "\x00\x1b[2J"

// plain is hostile text as PostgreSQL takes it.
var plain = strings.ReplaceAll(hostile, "\x00", "")

var signer = chain.Address{0xa1, 0x4c, 0x09, 0x77, 0xe2, 18: 0x5b, 19: 0x30}

// attended is a site with a signer that has one job waiting.
func attended(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.must(txstore.NewLeases(s.db).Register(t.Context(), signer, 56))
	_, err := txstore.NewLeases(s.db).Acquire(t.Context(), signer, lease.NewOwner("sender"), time.Minute)
	s.must(err)
	s.enqueue(1)
	return s
}

func someJob(n byte) job.Job {
	key := chain.Hash(sha256.Sum256([]byte{n}))
	return job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Account: chain.Address(key[12:]),
		Class: job.ClassMarketOrder, DueSinceMs: uint64(time.Now().UnixMilli()), Signer: signer,
		Tokens: []chain.Address{{1}},
		Evidence: job.Evidence{Block: chain.BlockRef{Number: 3, Hash: chain.Hash{3}, TimeMs: 3_000}, Generation: 1,
			Reason: hostile}}
}

func (s *site) enqueue(n byte) {
	s.t.Helper()
	a, err := txstore.NewIntents(s.db).Enqueue(s.t.Context(), someJob(n))
	s.must(err)
	if a != txm.NewAttempt {
		s.t.Fatal(a)
	}
}

// letter writes a dead letter about a job that was given up.
func (s *site) letter(n byte) {
	s.t.Helper()
	j := someJob(n)
	r, err := wire.Encode([]byte(wire.JobTopic(s.deps.Keeper.ChainID)), wire.Job{Job: j}, 0, 0)
	s.must(err)
	for _, h := range [][2]string{{"source.key", string(j.Signer[:])}, {"source.partition", "0"}, {"job", j.ID},
		{"attempt", "1"}, {"outcome", "refused"}, {"error", hostile}} {
		r.Headers = append(r.Headers, bus.Header{Key: h[0], Value: []byte(h[1])})
	}
	_, err = s.client.Producer(wire.DeadLetterTopic(s.deps.Keeper.ChainID)).Produce(s.t.Context(), 0, []bus.Record{r})
	s.must(err)
}

// do confirms an action in the browser.
func (b *browser) do(action, target, why string) (int, string) {
	b.t.Helper()
	return b.post("/act?"+url.Values{"do": {action}, "target": {target}}.Encode(), "/act",
		url.Values{"do": {action}, "target": {target}, "why": {why}})
}

// recorded are the entries of what the console did, oldest first, without sign-ins.
func (s *site) recorded() (all []pg.ConsoleAction) {
	s.t.Helper()
	entries, err := s.db.ConsoleActions().List(s.t.Context(), 0, 1000)
	s.must(err)
	for _, e := range entries {
		if e.Action != "sign in" && e.Action != "sign out" {
			all = append([]pg.ConsoleAction{e}, all...)
		}
	}
	return all
}

func (s *site) paused() string {
	s.t.Helper()
	all, err := txstore.NewSigners(s.db).List(s.t.Context())
	s.must(err)
	return all[0].Paused
}

// What an action changes is confirmed, done by the keeper's own code, and stands in the record before and after.
func TestPauseAndResume(t *testing.T) {
	s := attended(t)
	otto := s.as("otto")
	if _, page := otto.get("/act?do=signer-pause&target=" + signer.Hex()); !strings.Contains(page,
		"claims nothing new") ||
		!strings.Contains(page, "In flight") && !strings.Contains(page, "in flight") {
		t.Errorf("the confirmation:\n%s", page)
	}
	if len(s.recorded()) != 0 || s.paused() != "" {
		t.Fatal("a confirmation changes something")
	}
	if status, page := otto.do("signer-pause", signer.Hex(), "the feed is odd"); status != http.StatusOK ||
		!strings.Contains(page, "the feed is odd (by otto)") {
		t.Fatalf("%d\n%s", status, page)
	}
	if got := s.paused(); got != "the feed is odd (by otto)" {
		t.Errorf("paused: %q", got)
	}
	all := s.recorded()
	if len(all) != 2 || all[0].Stage != pg.ActionAsked || all[1].Stage != pg.ActionDone || all[0].Run != all[1].Run ||
		all[1].Who != "otto" || all[1].Role != "operator" || all[1].Before["paused"] != "no" ||
		all[1].After["paused"] != "the feed is odd (by otto)" || all[1].Reason != "the feed is odd" {
		t.Errorf("the record: %+v", all)
	}
	if status, page := otto.do("signer-pause", signer.Hex(), "again"); status != http.StatusConflict ||
		!strings.Contains(page, "paused already") || len(s.recorded()) != 2 {
		t.Errorf("paused twice: %d", status)
	}
	if status, _ := otto.do("signer-resume", signer.Hex(), ""); status != http.StatusOK || s.paused() != "" {
		t.Errorf("resumed: %d, %q", status, s.paused())
	}
	if _, page := otto.get("/audit"); !strings.Contains(page, "signer pause") ||
		!strings.Contains(page, "the feed is odd") ||
		!strings.Contains(page, "signer resume") {
		t.Errorf("the audit:\n%s", page)
	}
}

func TestDelayedJobsAreSteered(t *testing.T) {
	s := attended(t)
	otto := s.as("otto")
	_, err := s.db.Delayed().
		Add(t.Context(), delayed.Appointment{Kind: delayed.DailyReport, Key: plain, Payload: map[string]string{},
			DueAt: time.Now().Add(-time.Minute)})
	s.must(err)
	jobs, err := s.db.Delayed().List(t.Context(), "", "", 10)
	s.must(err)
	id := strconv.FormatInt(jobs[0].ID, 10)
	for _, action := range []string{"delayed-retry", "delayed-cancel"} {
		if status, page := otto.do(action, id, "because"); status != http.StatusOK {
			t.Errorf("%s: %d\n%s", action, status, page)
		}
	}
	if status, _ := otto.do("delayed-retry", id, "because"); status != http.StatusConflict {
		t.Errorf("what was called off is taken up: %d", status)
	}
	if all := s.recorded(); len(all) != 4 || all[1].Before["status"] != "pending" {
		t.Errorf("the record: %+v", all)
	}
	_, err = s.db.Delayed().
		Add(t.Context(), delayed.Appointment{Kind: delayed.DailyReport, Key: "later", Payload: map[string]string{},
			DueAt: time.Now().Add(time.Hour)})
	s.must(err)
	if status, page := otto.do("delayed-retry", "2", "because"); status != http.StatusConflict ||
		!strings.Contains(page, "it is not due before") {
		t.Errorf("what is not due is retried: %d\n%s", status, page)
	}
	if _, page := otto.get("/delayed"); strings.Contains(page, "do=delayed-retry&amp;target=2") {
		t.Errorf("a retry is offered of what is not due:\n%s", page)
	}
	if status, _ := otto.do("delayed-run", "", ""); status != http.StatusOK {
		t.Errorf("no scan: %d", status)
	}
	if all := s.recorded(); len(all) != 6 || all[3].Before["called off"] != "no" || all[3].After["called off"] == "no" {
		t.Errorf("the record: %+v", all)
	}
}

func TestALetterIsReplayed(t *testing.T) {
	s := attended(t)
	s.letter(7)
	otto := s.as("otto")
	if status, page := otto.do("letter-replay", "0", ""); status != http.StatusConflict ||
		!strings.Contains(page, "the state has no block yet") {
		t.Errorf("without a state: %d\n%s", status, page)
	}
	if all := s.recorded(); len(all) != 2 || all[1].Stage != pg.ActionFailed || all[1].Outcome == "" {
		t.Errorf("a failure is recorded as %+v", all)
	}
	pgtest.Hold(t, s.db, chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}, TimeMs: 50_000})
	if status, page := otto.do("letter-replay", "0", ""); status != http.StatusOK {
		t.Fatalf("%d\n%s", status, page)
	}
	topic := wire.JobTopic(s.deps.Keeper.ChainID)
	partition := wire.SignerPartition(signer, s.deps.Keeper.JobPartitions)
	_, end, err := s.client.Bounds(t.Context(), topic, partition)
	s.must(err)
	if end != 1 {
		t.Errorf("%d jobs were published", end)
	}
}

// Who may not, does not: without the role, without the session's own token, or from another site.
func TestActionsAreRefused(t *testing.T) {
	s := attended(t)
	s.letter(7)
	fields := url.Values{"do": {"signer-pause"}, "target": {signer.Hex()}, "why": {"x"}}
	vera, otto := s.as("vera"), s.as("otto")
	for _, path := range []string{"/signers", "/delayed", "/deadletters"} {
		if _, page := vera.get(path); strings.Contains(page, "/act?") {
			t.Errorf("%s offers a viewer an action", path)
		}
	}
	if status, _ := vera.post("/", "/act", fields); status != http.StatusForbidden {
		t.Errorf("a viewer acts: %d", status)
	}
	forged := url.Values{"do": {"signer-pause"}, "target": {signer.Hex()}, "why": {"x"}, "csrf": {"forged"}}
	if status, _ := otto.post("/", "/act", forged); status != http.StatusForbidden {
		t.Errorf("a forged form: %d", status)
	}
	missing := url.Values{"do": {"signer-pause"}, "target": {signer.Hex()}, "why": {"x"}, "csrf": {""}}
	if status, _ := otto.post("/", "/act", missing); status != http.StatusForbidden {
		t.Errorf("a form without a token: %d", status)
	}
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/act",
		strings.NewReader(fields.Encode()))
	s.must(err)
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ask.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := otto.Client.Do(ask)
	s.must(err)
	if status, _ := otto.read(answer); status != http.StatusForbidden {
		t.Errorf("from another site: %d", status)
	}
	if status, _ := otto.do("signer-pause", signer.Hex(), ""); status != http.StatusBadRequest {
		t.Errorf("without a reason: %d", status)
	}
	if status, _ := otto.do("signer-destroy", signer.Hex(), "x"); status != http.StatusBadRequest {
		t.Errorf("an action that there is not: %d", status)
	}
	if len(s.recorded()) != 0 || s.paused() != "" {
		t.Errorf("something was done: %+v, paused %q", s.recorded(), s.paused())
	}
}

// Text from outside is text, wherever it stands.
func TestHostileText(t *testing.T) {
	s := attended(t)
	_, err := txstore.NewSigners(s.db).Pause(t.Context(), signer, plain)
	s.must(err)
	s.letter(7)
	_, err = s.db.Delayed().
		Add(t.Context(), delayed.Appointment{Kind: delayed.DailyReport, Key: plain, Payload: map[string]string{},
			DueAt: time.Now()})
	s.must(err)
	anna := s.as("anna")
	told := append(append([]string{}, paths...), "/job?id="+url.QueryEscape(someJob(1).ID),
		"/act?do=signer-resume&target="+signer.Hex(), "/act?do=letter-replay&target=0",
		"/jobs?kind="+url.QueryEscape(hostile), "/job?id="+url.QueryEscape(hostile),
		"/act?do="+url.QueryEscape(hostile))
	seen := 0
	for _, path := range told {
		_, page := anna.get(path)
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") {
			t.Errorf("%s:\n%s", path, page)
		}
		seen += strings.Count(page, "&lt;script&gt;")
	}
	if seen < 5 {
		t.Errorf("hostile text stands in %d places: it was not shown where it should be", seen)
	}
}

// A page that is open is told what has changed, and only its own part; when its session has ended it is led away.
func TestUpdatesComeByThemselves(t *testing.T) {
	s := attended(t)
	otto := s.as("otto")
	again := func() (int, string, string) {
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/signers?", nil)
		s.must(err)
		ask.Header.Set("Hx-Request", "true")
		answer, err := otto.Client.Do(ask)
		s.must(err)
		status, page := otto.read(answer)
		return status, page, answer.Header.Get("Hx-Redirect")
	}
	if _, page, _ := again(); !strings.Contains(page, "works") || strings.Contains(page, "<html") {
		t.Fatalf("an update is\n%s", page)
	}
	_, err := txstore.NewSigners(s.db).Pause(t.Context(), signer, "from elsewhere")
	s.must(err)
	for began, told := time.Now(), false; !told; {
		_, page, _ := again()
		if told = strings.Contains(page, "from elsewhere"); !told && time.Since(began) > time.Minute {
			t.Fatalf("it is never told:\n%s", page)
		}
	}
	otto.post("/", "/signout", url.Values{})
	if status, page, to := again(); status != http.StatusUnauthorized || to != "/signin" ||
		strings.Contains(page, "elsewhere") {
		t.Errorf("a session that ended: %d, led to %q\n%s", status, to, page)
	}
}
