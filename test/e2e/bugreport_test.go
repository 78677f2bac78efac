package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"perpkeeper/lab/demo"
	"perpkeeper/test/programs"
)

// provider serves a node at a host of its own. One that lies says of every transaction that it failed.
func provider(t *testing.T, host, node string, lies bool) string {
	t.Helper()
	to, err := url.Parse(node)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.Path, r.Out.URL.RawQuery = "", ""
		r.Out.Header.Del("Accept-Encoding")
	}, ModifyResponse: func(r *http.Response) error {
		said, err := io.ReadAll(r.Body)
		if lies {
			said = bytes.ReplaceAll(said, []byte(`"status":"0x1"`), []byte(`"status":"0x0"`))
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(said)), int64(len(said))
		r.Header.Set("Content-Length", strconv.Itoa(len(said)))
		return err
	}}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: proxy}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// PIPE-9: while one of three endpoints lies, the report alone names it, what it said and what another one said, the
// line of the log, and decides about a job once more as it was decided. Nobody's key is in it.
func TestBugReportNamesTheLiar(t *testing.T) {
	long(t)
	k := startAdapted(t, nil, func(s *demo.Stack) {
		s.Adapt = func(d demo.Devnet) (map[string]string, string) {
			return map[string]string{"CHAIN_URLS": strings.Join([]string{
				provider(t, "127.0.0.3", d.RPC, true) + "/canary0001?key=canary0002", d.RPC,
				provider(t, "127.0.0.2", d.RPC, false)}, ",")}, ""
		}
	})
	k.progress(5, 1)
	var pages []string
	id := ""
	for _, p := range k.Processes {
		pages = append(pages, p.Name+"=http://"+p.HTTP)
		if seen := regexp.MustCompile(`order:0x[0-9a-f]{64}:[0-9]+`).FindString(p.Tail(200)); seen != "" {
			id = seen
		}
	}
	report := filepath.Join(t.TempDir(), "report.tar.gz")
	var files map[string]string
	k.await("a report with the dispute", func(ctx context.Context) error {
		told, err := k.Keeperctl(ctx, "bugreport", report, id, "--keeperctl.processes="+strings.Join(pages, ","))
		if err != nil {
			return fmt.Errorf("%w: %s", err, told)
		}
		if files = unpacked(t, report); !strings.Contains(files["disputes.json"], "127.0.0.3") {
			return fmt.Errorf("the disputes are %s", files["disputes.json"])
		}
		return nil
	})
	var disputes []struct {
		Message struct {
			Endpoint, Reason, Question string
			Said                       []struct{ Endpoint, Body string }
		}
	}
	if err := json.Unmarshal([]byte(files["disputes.json"]), &disputes); err != nil {
		t.Fatal(err)
	}
	proven := false
	for _, d := range disputes {
		m := d.Message
		t.Logf("%s %s: %s, said by %d", m.Endpoint, m.Reason, m.Question, len(m.Said))
		if !strings.Contains(m.Endpoint, "127.0.0.3") {
			t.Errorf("%+v", m)
		}
		proven = proven || len(m.Said) > 1 && strings.Contains(m.Said[0].Body, `"status":"0x0"`) &&
			!strings.Contains(m.Said[1].Body, `"status":"0x0"`)
	}
	if !proven {
		t.Errorf("no lie is there beside the truth: %s", files["disputes.json"])
	}
	log := ""
	for name, text := range files {
		if strings.HasSuffix(name, "log.jsonl") {
			log += text
		}
		if at := strings.Index(text, "canary"); at >= 0 {
			t.Errorf("%s holds %s", name, text[max(0, at-100):at+10])
		}
	}
	for part, text := range map[string]string{
		"evm: endpoint is excluded": log, `"message":"starting"`: log, "endpoint-disputes": files["doctor.json"],
		id: files["job-1.json"], "perp.1337.job.v1": files["topics.json"],
		`"LatencyMs"`: files["scanner/status.json"], `"Score"`: files["sender/status.json"],
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not where it belongs: %s", part, text[:min(len(text), 2000)])
		}
	}
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), filepath.Join(folder, "keeperctl"), "replay", "--from", report,
		"-o", "json")
	again.Env = []string{"PATH=/nowhere"} // and no setting
	out, err := again.Output()
	var result struct{ Same, Differs, NotRepeated int }
	if err != nil || json.Unmarshal(out, &result) != nil || result.Same == 0 || result.Differs+result.NotRepeated > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// unpacked are the files of a report.
func unpacked(t *testing.T, report string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "gzip", "-dc", report).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(bytes.NewReader(out)); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		text, read := io.ReadAll(archive)
		if err != nil || read != nil {
			t.Fatal(err, read)
		}
		files[strings.TrimPrefix(header.Name, "bugreport/")] = string(text)
	}
}
