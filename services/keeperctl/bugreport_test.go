package keeperctl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/replay"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/service/config"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/keeperctl/doctor"
)

// plant gives every secret of a configuration a canary, each list of tables one row with canaries, and returns all of
// them as they would stand in a text.
func plant(v reflect.Value, planted *[]string) {
	canary := func() string {
		*planted = append(*planted, fmt.Sprintf("canary%03d", len(*planted)))
		return (*planted)[len(*planted)-1]
	}
	switch x := v.Addr().Interface().(type) {
	case *secret.String:
		*x = secret.New("Authorization: Bearer " + canary())
		return
	case *pg.Config:
		x.URL = secret.MustURL(fmt.Sprintf("postgres://keeper:%s@127.0.0.1:1/keeper?sslmode=disable&password=%s",
			canary(), canary()))
		plant(reflect.ValueOf(&x.Password).Elem(), planted)
		return
	case *secret.URL:
		*x = secret.MustURL(fmt.Sprintf("http://%s:%s@127.0.0.1:1/v3/%s?key=%s", canary(), canary(), canary(),
			canary()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				plant(v.Field(i), planted)
			}
		}
	case reflect.Slice:
		switch v.Type().Elem() {
		case reflect.TypeFor[secret.String](), reflect.TypeFor[secret.URL]():
		default:
			if v.Type().Elem().Kind() != reflect.Struct {
				return
			}
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plant(v.Index(0), planted)
	default:
	}
}

// filesOf are the files of a report by their names.
func filesOf(t *testing.T, report string) map[string]string {
	t.Helper()
	file, err := os.Open(report)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		text, read := io.ReadAll(archive)
		if err := errors.Join(err, read); err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "bugreport/")] = string(text)
	}
}

// No secret of the configuration is in a bug report, wherever it stood: not in the settings, not in what commands say
// of those who do not answer, and not in what a process has logged or an endpoint has said.
func TestBugReportHasNoSecrets(t *testing.T) {
	cfg := defaultConfig()
	var canaries []string
	plant(reflect.ValueOf(&cfg).Elem(), &canaries)
	if len(canaries) < 40 {
		t.Fatalf("%d secrets were planted: %v", len(canaries), canaries)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"level":"error","page":%q,"error":"refused: %s"}`+"\n", r.URL.Path,
			strings.Join(canaries, `\" /`))
	}))
	t.Cleanup(server.Close)
	set, err := config.New(program, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Kafka.Brokers, cfg.Own.Patience = []string{"127.0.0.1:1"}, 2*time.Second
	cfg.Own.Processes = []status.Address{{Name: "scanner", URL: server.URL}}
	var said bytes.Buffer
	s := &session{Config: cfg, set: set, out: printer{Writer: &said}}
	report := filepath.Join(t.TempDir(), "report.tar.gz")
	if err := bugReport(t.Context(), s, []string{report, chain.Hash{1}.Hex()}); err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, report)
	for _, name := range []string{"about.json", "keeperctl.toml", "doctor.json", "status.json", "topics.json",
		"disputes.json", "generations.json", "job-1.json", casesFile, "scanner/log.jsonl",
		"scanner/metrics.txt", "scanner/version.json"} {
		if _, is := files[name]; !is {
			t.Errorf("there is no %s", name)
		}
	}
	for name, text := range files {
		if at := strings.Index(text, "canary"); at >= 0 {
			t.Errorf("%s holds %q", name, text[max(0, at-80):min(len(text), at+20)])
		}
	}
	if !strings.Contains(files["scanner/log.jsonl"], "refused: "+secret.Mask) {
		t.Errorf("the log is %s", files["scanner/log.jsonl"])
	}
	if strings.Contains(said.String(), "canary") {
		t.Errorf("it printed %s", said.String())
	}
}

// PIPE-9: replay --from needs the file and nothing else, and says which decision differs.
func TestReplayFromReport(t *testing.T) {
	row, err := pg.EncodeRow(perp.Request{Key: chain.Hash{7}, Kind: perp.Deposit, Status: perp.Cancelled})
	if err != nil {
		t.Fatal(err)
	}
	said := job.Job{ID: job.RequestID(job.Deposit, chain.Hash{7}), Kind: job.Deposit, Key: chain.Hash{7},
		Evidence: job.Evidence{Reason: "request waits"}}
	gone := replay.Case{PublishedJob: replay.PublishedJob{Job: job.Job{ID: "order:x:1"}},
		Missing: "a branch that was left"}
	cases, err := json.Marshal([]replay.Case{gone, {PublishedJob: replay.PublishedJob{Job: said},
		Rules: due.Rules{FireRatio: perp.One}, Rows: []replay.KeptRow{{Table: perp.Requests, Row: row}},
		Reports: []price.Report{}}})
	if err != nil {
		t.Fatal(err)
	}
	write := func(files map[string][]byte) string {
		archive, err := pack(files, secret.Scrubber())
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "report.tar.gz")
		if err := os.WriteFile(file, archive, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	out, complaint, code := run(t, nil, "replay", "--from", write(map[string][]byte{casesFile: cases}))
	if code != exitFindings || !strings.Contains(complaint, "1 of 2 decisions differ") {
		t.Errorf("exit code %d, %s%s", code, out, complaint)
	}
	wantTold(t, out, "DIFFERS", "not due: it is Cancelled", "a branch that was left", "1 could not be repeated")
	if out, complaint, code = run(t, nil, "replay", "--from", write(nil)); code != exitNotAsked ||
		!strings.Contains(complaint, "holds no "+casesFile) {
		t.Errorf("exit code %d, %s%s", code, out, complaint)
	}
}

// What endpoints said against each other is listed among the dead letters, shown word for word, found by the doctor
// apart from what was given up, and in a bug report.
func TestDisputesAreShown(t *testing.T) {
	y := newStoried(t)
	keep := y.Client.KeepDispute(y.s.Keeper.ChainID)
	dispute := `{"endpoint":"http://a/***","said":[{"endpoint":"http://a/***","body":"\"0x8\""},` +
		`{"endpoint":"http://b/","body":"\"0x7\""}]}`
	if err := keep(t.Context(), "http://a/***", "contradicted, for nonces: it says 8", []byte(dispute)); err != nil {
		t.Fatal(err)
	}
	letters := deadLetters{deadletter.Topic{Client: y.Client, Keeper: y.s.Keeper}, 10, printer{}}
	var out bytes.Buffer
	letters.out.Writer = &out
	if err := errors.Join(letters.list(t.Context(), []string{"endpoint"}), letters.show(t.Context(), []string{"0"}),
		disputes(t.Context(), &session{Config: y.s.Config, out: printer{Writer: &out}})); err != nil {
		t.Fatal(err)
	}
	wantTold(t, out.String(), "http://a/***", "contradicted, for nonces: it says 8", `"key": "endpoint"`)
	if strings.Count(out.String(), `"body": "\"0x7\""`) != 2 {
		t.Errorf("%s", &out)
	}
	var topics doctor.Topics
	y.s.lookAtLetters(t.Context(), y.Client, &topics)
	if topics.DeadLetters != 0 || len(topics.Disputes) != 1 || !strings.Contains(topics.Disputes[0], "it says 8") {
		t.Errorf("%+v", topics)
	}
	if err := letters.replay(t.Context(), []string{"0"}); !errors.Is(err, deadletter.ErrNotReplayed) {
		t.Errorf("it was replayed: %v", err)
	}
}
