package keeperctl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// statusOf runs the command on a session and returns the lines by what they are about, blanks made one.
func statusOf(t *testing.T, s *session) (lines []string, err error) {
	t.Helper()
	var out strings.Builder
	s.out = printer{Writer: escaped(&out)}
	err = s.show(s.look(t.Context()))
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines, err
}

func wantLines(t *testing.T, lines []string, want ...string) {
	t.Helper()
	all := strings.Join(lines, "\n")
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("%q is not in\n%s", w, all)
		}
	}
}

// A keeper on one screen: from the chain, the database, the price topic and the processes' pages; what is wrong stands
// first, and what is away is said.
func TestStatus(t *testing.T) {
	b, o := newBench(t), newOffice(t)
	s := &session{Config: defaultConfig()}
	s.Keeper.ChainID, s.Kafka = b.node.ChainID().Uint64(), o.kafka
	s.Chain.URLs = []secret.URL{secret.MustURL(b.node.HTTPURL())}
	s.Postgres.URL = secret.MustURL(b.address)
	if err := o.Client.Ensure(t.Context(), bus.Specs(s.Keeper.Topics()...)); err != nil {
		t.Fatal(err)
	}
	ready, metrics := http.StatusOK,
		"# TYPE planner_jobs_live gauge\nplanner_jobs_live{kind=\"liquidation\"} 3\n"+
			"planner_jobs_live{kind=\"order\"} 0\n"
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(ready)
			_, _ = fmt.Fprint(w, "kafka: gone\x1b[2J\n")
			return
		}
		_, _ = fmt.Fprint(w, metrics)
	}))
	defer pages.Close()
	s.Own.Processes = []status.Address{{Name: "planner", URL: pages.URL}, {Name: "sender", URL: "http://127.0.0.1:1"}}

	lines, err := statusOf(t, s)
	wantLines(t, lines, "keeper of chain", "alone: every job is its turn", "ok planner ready",
		"ok planner: jobs due kind liquidation: 3",
		"!! sender not reached: ", "!! prices no report yet", "!! state no block yet", "ok chain head block 0",
		"ok queue+in flight empty", "ok last hour nothing has ended")
	if err == nil || !strings.HasPrefix(lines[2], "!!") || !strings.HasPrefix(lines[len(lines)-1], "ok") {
		t.Errorf("wrong things come first, and are an error: %v\n%s", err, strings.Join(lines, "\n"))
	}

	// Work, a fresh report, a pause, and a process that is not ready.
	j := lostJob(1)
	j.Signer, j.Class = b.attend().Signer, job.ClassLiquidation
	if a, err := txstore.NewIntents(b.db).Enqueue(t.Context(), j); err != nil || a != txm.NewAttempt {
		t.Fatal(a, err)
	}
	if _, err := txstore.NewSigners(b.db).Pause(t.Context(), j.Signer, "by hand\x1b[2J"); err != nil {
		t.Fatal(err)
	}
	report := wire.Price{Token: chain.Address{1}, Min: chain.U64(1), Max: chain.U64(1),
		TimeMs: uint64(time.Now().UnixMilli())}
	r, err := wire.Encode(report.Token[:], report, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Client.Producer(wire.PriceTopic(s.Keeper.ChainID)).
		Produce(t.Context(), 0, []bus.Record{r}); err != nil {
		t.Fatal(err)
	}
	ready, metrics = http.StatusServiceUnavailable,
		"# TYPE planner_index_miss_total counter\nplanner_index_miss_total 2\n"
	s.Own.Processes = s.Own.Processes[:1]
	lines, _ = statusOf(t, s)
	wantLines(t, lines, "ok prices newest report ", "PAUSED: by hand\\u001b[2J; 1 queued",
		"ok queue+in flight liquidations 1+0",
		"!! planner not ready: kafka: gone\\u001b[2J", "!! planner: missed by the index 2")
	s.Postgres.URL = secret.MustURL("postgres://keeper:hidden@127.0.0.1:1/keeper?sslmode=disable")
	lines, _ = statusOf(t, s)
	wantLines(t, lines, "!! database not reached: ", "ok prices newest report")
	if strings.Contains(strings.Join(lines, ""), "hidden") {
		t.Error("a password is shown")
	}
}

func TestProcessesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "planner", "=http://x", "planner=", "planner=ftp://x", "planner=http://"} {
		if new(status.Address).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// LIQ-8: what is being liquidated, and what could not be, is listed; the latter is a finding.
func TestLiquidationsList(t *testing.T) {
	b := newBench(t)
	ask := func(args ...string) (string, string, int) {
		t.Setenv("PERPKEEPER_POSTGRES_URL", b.address)
		return run(t, nil, append([]string{"liquidations"}, args...)...)
	}
	if out, _, code := ask(); code != exitFine || out != "no position is being liquidated, and none could not be\n" {
		t.Errorf("of nothing: exit code %d, %q", code, out)
	}
	fence, key := b.attend(), chain.Hash{5}
	pgtest.Hold(t, b.db, chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}},
		perp.Position{PositionKey: key, Status: perp.Active})
	j := job.Job{ID: job.LiquidationID(key, 1), Kind: job.Liquidation, Key: key, Class: job.ClassLiquidation,
		Signer: b.signer}
	_, err := txstore.NewIntents(b.db).Enqueue(t.Context(), j)
	b.must(err)
	heads, err := txstore.NewIntents(b.db).Heads(t.Context(), b.signer, txm.Pick{Limit: 1})
	b.must(err)
	b.must(txstore.NewIntents(b.db).Skip(t.Context(), fence, heads[0].ID, txm.Ending{
		Verdict: txm.Verdict{Outcome: job.Refused, Reason: "cause\x1b[2J"},
		Rest:    txm.Rest{RetryAfterMs: 1, GivenUp: true},
	}))
	for _, args := range [][]string{nil, {"--failed"}} {
		out, complaint, code := ask(args...)
		wantTold(t, out, key.Hex(), "LIQUIDATION_FAILED", j.ID, "refused", "cause\\u001b[2J")
		if code != exitFindings || !strings.Contains(complaint, "could not be liquidated: 1 "+
			"(docs/runbooks/jobs.md)") {
			t.Errorf("%v: exit code %d, %q", args, code, complaint)
		}
	}
	out, _, _ := ask("--output", "json")
	var rows []struct{ Position, Status string }
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 1 || rows[0].Position != key.Hex() {
		t.Errorf("%s: %v", out, err)
	}
}
