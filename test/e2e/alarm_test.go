package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"perpkeeper/lab/demo"
)

// alarm is the monitoring of a region: Prometheus with the shipped rules and Alertmanager with the shipped routes, as
// processes. What they post is a chat's that takes everything.
type alarm struct {
	mu     sync.Mutex
	posted []string
}

// startAlarm watches a keeper until the test ends. It returns nil where the two programs are not installed.
func startAlarm(t *testing.T, of *demo.Keeper) *alarm {
	t.Helper()
	prometheus, missing := exec.LookPath("prometheus")
	manager, none := exec.LookPath("prometheus-alertmanager")
	if missing != nil || none != nil {
		t.Log("no Prometheus here: that alarms are delivered is left out (deploy/setup.sh monitoring installs it)")
		return nil
	}
	a, dir := &alarm{}, t.TempDir()
	chat := httptest.NewServer(http.HandlerFunc(a.post))
	t.Cleanup(chat.Close)
	for file, text := range map[string]string{"slack_url": chat.URL, "smtp_password": "none", "pagerduty_key": "none"} {
		write(t, filepath.Join(dir, file), text)
	}

	routes := strings.NewReplacer("/run/secrets/", dir+"/", "${SMTP_HOST}:${SMTP_PORT}", "127.0.0.1:1",
		"${SMTP_FROM}", "keeper@example.com", "${SMTP_USER}", "keeper", "${REPORT_TO}", "people@example.com").
		Replace(shipped(t, "alertmanager/alertmanager.yml"))
	lines := strings.Split(routes, "\n")
	kept := lines[:0]
	for _, line := range lines { // as start.sh does where nobody is to hear of the watchdog
		if !strings.HasSuffix(line, "# watchdog") {
			kept = append(kept, line)
		}
	}
	write(t, filepath.Join(dir, "alertmanager.yml"), strings.Join(kept, "\n"))

	rules, err := filepath.Abs("../../deploy/compose/prometheus/rules")
	if err != nil {
		t.Fatal(err)
	}
	at := freeAddress(t)
	general, _, _ := strings.Cut(shipped(t, "prometheus/prometheus.yml"), "scrape_configs:")
	config := strings.NewReplacer("rules/*.yml", rules+"/*.yml", "alertmanager:9093", at, "${KEEPER_NAME}", of.Role(),
		"${RUNBOOKS_URL}", "https://example.com").Replace(general) + "scrape_configs:\n"
	for _, p := range of.Processes {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%q]}]}\n", p.Name, p.HTTP)
	}
	write(t, filepath.Join(dir, "prometheus.yml"), config)

	run(t, manager, "--config.file="+filepath.Join(dir, "alertmanager.yml"), "--storage.path="+filepath.Join(dir, "a"),
		"--web.listen-address="+at, "--cluster.listen-address=")
	run(t, prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "p"), "--web.listen-address="+freeAddress(t))
	return a
}

// post takes what Alertmanager posts.
func (a *alarm) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.posted = append(a.posted, string(body))
	_, _ = io.WriteString(w, "ok")
}

// delivered reports whether a message with all of some words was posted.
func (a *alarm) delivered(words ...string) func(context.Context) error {
	return func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()
	messages:
		for _, message := range a.posted {
			for _, word := range words {
				if !strings.Contains(message, word) {
					continue messages
				}
			}
			return nil
		}
		return fmt.Errorf("%q is not among the %d messages posted", words, len(a.posted))
	}
}

func shipped(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/compose", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a program until the test ends. Its last words are shown if it ends before.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if out, err := cmd.CombinedOutput(); ctx.Err() == nil {
			t.Errorf("%s has ended: %v: %s", filepath.Base(program), err, out[max(0, len(out)-500):])
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}
