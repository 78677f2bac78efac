package compose

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perpkeeper/test/programs"
)

// rule is an alert or a recording rule, as far as is needed here. promtool (make alerts-check) reads them as Prometheus
// does.
type rule struct {
	file, name, text string
	record           bool
}

var (
	ruleStart = regexp.MustCompile(`^ +- (alert|record): (\S+)$`)
	exprStart = regexp.MustCompile(`^( +)expr: (.*)$`)
)

// rules are those of every rule file.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/compose/prometheus/rules/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no rule files: %v", err)
	}
	for _, file := range files {
		for line := range strings.Lines(read(t, file)) {
			if start := ruleStart.FindStringSubmatch(strings.TrimRight(line, "\n")); start != nil {
				all = append(all, rule{file: filepath.Base(file), name: start[2], record: start[1] == "record"})
			}
			if len(all) > 0 && all[len(all)-1].file == filepath.Base(file) &&
				!strings.HasPrefix(strings.TrimSpace(line), "#") {
				all[len(all)-1].text += line
			}
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expr is the rule's expression: what stands behind the key, and every line below that is indented further.
func (r rule) expr(t *testing.T) string {
	t.Helper()
	expr, indent := "", -1
	for line := range strings.Lines(r.text) {
		start := exprStart.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case start != nil:
			expr, indent = strings.TrimPrefix(start[2], "|"), len(start[1])
		case indent >= 0 && len(line)-len(strings.TrimLeft(line, " ")) > indent:
			expr += " " + strings.TrimSpace(line)
		default:
			indent = -1
		}
	}
	if strings.TrimSpace(expr) == "" {
		t.Fatalf("%s: %s has no expression", r.file, r.name)
	}
	return expr
}

// usage is a metric of an expression and the labels it is selected by.
type usage struct {
	name   string
	labels []string
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\([^)]*\)`)
	duration = regexp.MustCompile(`\[[^\]]*\]|\boffset\s+\S+`)
	word     = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?`)
	matcher  = regexp.MustCompile(`([a-zA-Z_]+)\s*(?:=~|!~|!=|=)`)
)

// usages finds the metrics of an expression: every word that is neither a function nor an operator.
func usages(expr string) (found []usage) {
	expr = quoted.ReplaceAllString(expr, `""`)
	expr = duration.ReplaceAllString(grouping.ReplaceAllString(expr, ""), "")
	for _, w := range word.FindAllStringSubmatch(expr, -1) {
		if w[2] == "(" || slices.Contains([]string{"and", "or", "unless", "bool"}, w[1]) {
			continue
		}
		u := usage{name: w[1]}
		for _, label := range matcher.FindAllStringSubmatch(w[2], -1) {
			u.labels = append(u.labels, label[1])
		}
		found = append(found, u)
	}
	return found
}

// registered is the label set of every metric that some process registers, by the names that Prometheus gives its
// series.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for _, process := range []string{"scanner", "statevm", "planner", "sender", "console"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, process), "--print-metrics")
		cmd.Env = append(os.Environ(), endAtOnce)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", process, err)
		}
		for line := range strings.Lines(string(out)) {
			cells := strings.Split(line, "|")
			name, kind := strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2])
			labels := append(strings.Split(strings.ReplaceAll(cells[3], " ", ""), ","), "job", "instance")
			known[name] = labels
			if kind == "histogram" {
				delete(known, name)
				known[name+"_count"], known[name+"_sum"], known[name+"_bucket"] = labels, labels,
					append(slices.Clone(labels), "le")
			}
		}
	}
	return known
}

// foreign are series of Prometheus and Alertmanager themselves.
var foreign = map[string][]string{
	"up": {"job", "instance"}, "ALERTS": {"alertname", "alertstate", "severity"},
	"alertmanager_notifications_failed_total": {"integration", "reason"},
}

// constant is an expression that asks for nothing.
var constant = regexp.MustCompile(`^\s*vector\([0-9.]+\)\s*$`)

var queried = regexp.MustCompile(`query "([^"]*)"`)

// A metric or label that is renamed breaks this test, and not an alert that then never fires.
func TestRulesAndBoardsKnowTheirMetrics(t *testing.T) {
	known, all := registered(t), rules(t)
	maps.Copy(known, foreign)
	recorded := map[string]bool{}
	for _, r := range all {
		recorded[r.name] = recorded[r.name] || r.record
	}
	check := func(where, expr string) {
		t.Helper()
		found := usages(expr)
		if len(found) == 0 && !strings.Contains(expr, "hour()") && !constant.MatchString(expr) {
			t.Errorf("%s: no metric in %q", where, expr)
		}
		for _, u := range found {
			labels, is := known[u.name]
			if !is && !recorded[u.name] {
				t.Errorf("%s: no process registers %s", where, u.name)
			}
			for _, label := range u.labels {
				if is && !slices.Contains(labels, label) {
					t.Errorf("%s: %s has no label %s, only %v", where, u.name, label, labels)
				}
			}
		}
	}
	for _, r := range all {
		check(r.file+": "+r.name, r.expr(t))
		for _, q := range queried.FindAllStringSubmatch(r.text, -1) {
			check(r.file+": "+r.name, q[1])
		}
	}
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			check(p.board+": "+p.Title, target.Expr)
		}
	}
}

// unread are metrics that no rule, board or program reads, and why they are there.
var unread = map[string]string{
	"bus_group_partitions":       "test/e2e and test/chaos wait by it for partitions to be shared",
	"statevm_block":              "where a partition stands, beside its time",
	"perpkeeper_build_info":      "says which build a scrape is of",
	"retention_failures_total":   "silent trouble: the archive is behind",
	"statevm_fenced_total":       "silent trouble: two processes claim a partition",
	"delayed_found_total":        "DLY-9",
	"ttl_entries":                "TTL-9",
	"ttl_oldest_pending_seconds": "TTL-9",
	"ttl_retries_total":          "TTL-9",
	"ttl_failures_total":         "silent trouble: retries fail",
}

// A metric is there for a rule, a board or a program of the operator's, or its reason is listed.
func TestEveryMetricIsRead(t *testing.T) {
	var text strings.Builder
	for _, r := range rules(t) {
		text.WriteString(r.expr(t) + "\n")
		for _, q := range queried.FindAllString(r.text, -1) {
			text.WriteString(q + "\n")
		}
	}
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			text.WriteString(target.Expr + "\n")
		}
	}
	for _, folder := range []string{"services/keeperctl", "services/console", "pkg/operator"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				text.WriteString(read(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	words, known := map[string]bool{}, registered(t)
	for _, w := range regexp.MustCompile(`\w+`).FindAllString(text.String(), -1) {
		words[w] = true
	}
	metrics := map[string]bool{} // and whether they are read
	for name := range known {
		is := words[name]
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			if of, part := strings.CutSuffix(name, part); part && known[of+"_bucket"] != nil {
				name = of
			}
		}
		metrics[name] = metrics[name] || is || words[name]
	}
	for name, is := range metrics {
		if why := unread[name]; is == (why != "") {
			t.Errorf("%s is read: %t; the list says: %q", name, is, why)
		}
	}
	for name := range unread {
		if _, is := metrics[name]; !is {
			t.Errorf("%s is listed, and no process registers it", name)
		}
	}
}

// panel is one of a Grafana board.
type panel struct {
	board       string // the file's name
	Title, Type string
	Targets     []struct{ Expr string }
}

// panels are those of all boards.
func panels(t *testing.T) (all []panel) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/compose/grafana/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no boards: %v", err)
	}
	for _, file := range files {
		var dashboard struct{ Panels []panel }
		if err := json.Unmarshal([]byte(read(t, file)), &dashboard); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range dashboard.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: the panel %s shows nothing", file, p.Title)
			}
			p.board = filepath.Base(file)
			all = append(all, p)
		}
	}
	return all
}

// There is a board for each thing that operators look at, whose objectives are LIQ-16's, and each of their queries is
// one that Prometheus understands. That each gets an answer from a running keeper is what the engine's test shows.
func TestBoardsAreUnderstood(t *testing.T) {
	boards, objectives := map[string]int{}, 0
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: boards\n    rules:\n")
	for _, p := range panels(t) {
		boards[p.board]++
		for _, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
			quoted, err := json.Marshal(expr) // a string of JSON is one of YAML
			if err != nil {
				t.Fatal(err)
			}
			rules.WriteString("      - {record: a:b, labels: {at: \"" + strconv.Itoa(rules.Len()) + "\"}, expr: " +
				string(quoted) + "}\n")
			if p.board == "liquidations.json" && slices.Contains(objectiveQueries, target.Expr) {
				objectives++
			}
		}
	}
	if got := slices.Sorted(maps.Keys(boards)); !slices.Equal(got,
		[]string{"liquidations.json", "money.json", "road.json", "senders.json"}) {
		t.Errorf("the boards are %v", got)
	}
	if objectives != len(objectiveQueries) {
		t.Errorf("the board of liquidations shows %d of the %d objectives", objectives, len(objectiveQueries))
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: deploy/setup.sh monitoring says where to get it")
	}
	file := filepath.Join(t.TempDir(), "boards.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("Prometheus does not understand the boards: %v\n%s", err, out)
	}
}

// objectiveQueries are those of LIQ-16 as the board of liquidations asks for them.
var objectiveQueries = []string{
	`histogram_quantile(0.99, sum by (le) (rate(planner_received_to_job_seconds_bucket[$__rate_interval])))`,
	`histogram_quantile(0.99, sum by (le) (` +
		`rate(sender_landed_age_seconds_bucket{kind="liquidation"}[$__rate_interval])))`,
	`1 - liquidation:failure:ratio1h`, `sum(sender_liquidations_in_flight)`, `liquidation:bad_debt:ratio1h`,
}

var (
	severities = regexp.MustCompile(`(?m)^ +labels: \{severity: (?:'(.*)'|(\w+))`)
	actions    = regexp.MustCompile(`\{\{.*?\}\}`)
	entries    = regexp.MustCompile(`(?m)^## (\w+)\n([^#]+(?:#[a-z][^#]*)*)`)
)

// maxEntry is how many words whoever is woken has to read.
const maxEntry = 80

// LIQ-17: every alert has severities that are routed, says what is wrong, and leads to its entry in the runbooks, which
// is short. No entry is left of an alert that is gone.
func TestAlertsLeadSomewhere(t *testing.T) {
	read := entries.FindAllStringSubmatch(read(t, filepath.Join(root, "docs/runbooks/alerts.md")), -1)
	words := map[string]int{}
	for _, entry := range read {
		words[entry[1]] = len(strings.Fields(entry[2]))
	}
	left := maps.Clone(words)
	for _, r := range rules(t) {
		if r.record {
			continue
		}
		routed := []string{"notice", "warning", "critical"}
		if r.name == "Watchdog" { // it has a route of its own, by its name
			routed = []string{"none"}
		}
		found := severities.FindStringSubmatch(r.text)
		if found == nil {
			t.Errorf("%s: %s has no severity", r.file, r.name)
			continue
		}
		for severity := range strings.FieldsSeq(actions.ReplaceAllString(found[1]+found[2], " ")) {
			if !slices.Contains(routed, severity) {
				t.Errorf("%s: %s has the severity %s", r.file, r.name, severity)
			}
		}
		if !regexp.MustCompile(`(?m)^ +summary: \S`).MatchString(r.text) {
			t.Errorf("%s: %s has no summary", r.file, r.name)
		}
		link := "{{ $externalLabels.runbooks }}/alerts.md#" + strings.ToLower(r.name)
		if !strings.Contains(r.text, ` runbook: "`+link+`"`) {
			t.Errorf("%s: %s does not lead to %s", r.file, r.name, link)
		}
		if n := words[r.name]; n == 0 || n > maxEntry {
			t.Errorf("docs/runbooks/alerts.md has %d words on %s, not 1 to %d", n, r.name, maxEntry)
		}
		delete(left, r.name)
	}
	if len(left) > 0 {
		t.Errorf("docs/runbooks/alerts.md has entries of no alert: %v", left)
	}
}

var (
	fires  = regexp.MustCompile(`(?m)alertname: (\w+)$`)
	silent = regexp.MustCompile(`(?:alertname: |ALERTS\{alertname=")(\w+)["},].*(?:exp_alerts|exp_samples): \[\]`)
	quiet  = regexp.MustCompile(`expr: '?ALERTS'?, .*exp_samples: \[\]`)
)

// Every alert has a test that expects it and one that expects it not to be there, in the file of the same name.
func TestAlertsAreTested(t *testing.T) {
	for _, r := range rules(t) {
		tests := read(t, filepath.Join(root, "deploy/compose/prometheus/rules/tests", r.file))
		named := func(expr *regexp.Regexp) bool {
			return slices.ContainsFunc(expr.FindAllStringSubmatch(tests, -1),
				func(m []string) bool { return m[1] == r.name })
		}
		if r.record || r.name == "Watchdog" && named(fires) { // it always fires
			continue
		}
		if !named(fires) {
			t.Errorf("%s: no test expects %s, with its labels and what it says", r.file, r.name)
		}
		if !named(silent) && !quiet.MatchString(tests) {
			t.Errorf("%s: no test expects that %s is silent", r.file, r.name)
		}
	}
}

// PIPE-6: everything of the project that serves metrics is scraped, by the name it has on the compose network.
func TestEveryProcessIsScraped(t *testing.T) {
	project, err := load(t, envFile(t, "demo.env"), "demo", "monitoring")
	if err != nil {
		t.Fatal(err)
	}
	scraped := regexp.MustCompile(`names: \[(.*)\]`).
		FindStringSubmatch(read(t, filepath.Join(root, "deploy/compose/prometheus/prometheus.yml")))
	if scraped == nil {
		t.Fatal("prometheus.yml names no processes")
	}
	names := strings.Split(scraped[1], ", ")
	for name, s := range project.Services {
		// which is no part of a keeper
		serves := s.Environment["PERPKEEPER_HTTP_LISTEN"] != nil && s.Restart != "no" && name != "devnet"
		if serves != slices.Contains(names, name) {
			t.Errorf("%s serves metrics: %v, and is scraped: %v", name, serves, !serves)
		}
	}
}

var (
	consolePage = regexp.MustCompile(`\n +console: (\S+)\n`)
	consoleEdge = regexp.MustCompile(`\{"(/[a-z]*)(?:\{\$\})?", "[^"]+", "[a-z]+", (?:true|false), `)
)

// Whoever is told of an alert is told where the console shows it, and the console has that page.
func TestAlertsLeadToThePageThatShowsThem(t *testing.T) {
	pages := map[string]bool{}
	source := read(t, filepath.Join(root, "services/console/web/page.go"))
	for _, route := range consoleEdge.FindAllStringSubmatch(source, -1) {
		pages[route[1]] = true
	}
	if len(pages) < 10 {
		t.Fatalf("the console's pages are %v", pages)
	}
	for _, r := range rules(t) {
		if r.record {
			continue
		}
		if page := consolePage.FindStringSubmatch(r.text); page == nil || !pages[page[1]] {
			t.Errorf("%s: %s leads to no page of the console: %v", r.file, r.name, page)
		}
	}
}
