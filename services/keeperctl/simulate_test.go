package keeperctl

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const calmScenario = `
says = "all is well"
duration = "20s"
seeds = 2
jobs = { per_second = 0.3 }

[[expect]]
measure = "executed_by"
tier = 1
at_least = 100
`

// played runs the command on a scenario of this text.
func played(t *testing.T, text string, flags ...string) (code int, out, complaint string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), append([]string{"simulate", path}, flags...), IO{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// TIER-17, TIER-18: what comes out as expected is success, what does not is one clear line and failure.
func TestSimulate(t *testing.T) {
	code, out, complaint := played(t, calmScenario)
	if code != 0 || complaint != "" || !strings.Contains(out, "gas saved") ||
		!strings.Contains(out, "as expected (1 expectations)") {
		t.Errorf("exit %d, %q\n%s", code, complaint, out)
	}
	code, out, complaint = played(t, strings.Replace(calmScenario, "at_least = 100", "at_most = 0", 1))
	if code != 1 || !strings.Contains(complaint, "scenario: 1 expectations are not met") ||
		!strings.Contains(out, "executed_by of tier 1 is 100 %, expected at most 0 %") {
		t.Errorf("exit %d, %q\n%s", code, complaint, out)
	}
}

func TestSimulateTellsThePlay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "play.txt")
	code, out, _ := played(t, calmScenario, "--seeds", "1", "--transcript", path)
	written, err := os.ReadFile(path)
	if code != 0 || err != nil || !strings.Contains(string(written), "Master sends") ||
		strings.Contains(out, "Master sends") {
		t.Errorf("exit %d, %v\n%s\n%s", code, err, out, written)
	}
	if code, out, _ := played(t, calmScenario, "--seeds", "1", "--transcript", "-"); code != 0 ||
		!strings.Contains(out, string(written)) {
		t.Errorf("exit %d, the same play is told otherwise:\n%s", code, out)
	}
}

func TestSimulateMakesTables(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "calm.toml"), []byte(calmScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, complaint bytes.Buffer
	if code := Run(t.Context(), []string{"simulate", "--table", dir}, IO{Out: &out, Err: &complaint}); code != 0 {
		t.Errorf("exit %d: %s", code, complaint.String())
	}
	for _, want := range []string{"Policy `windows`", "Policy `delay`", "| all is well | 0.3 jobs/s |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestSimulateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		calmScenario + "colour = 1":   "unknown key",
		"duration = \"20s\"":          "jobs: name a rate",
		calmScenario + "at_most = \"": "line",
	} {
		if code, _, complaint := played(t, text); code != 1 || !strings.Contains(complaint, want) ||
			strings.Count(complaint, "\n") != 1 {
			t.Errorf("exit %d, %q, want %q", code, complaint, want)
		}
	}
	if code, _, complaint := played(t, calmScenario, "--policy", "vote"); code != 1 ||
		!strings.Contains(complaint, "neither windows nor delay") {
		t.Errorf("exit %d, %q", code, complaint)
	}
	var complaint bytes.Buffer
	if code := Run(t.Context(), []string{"simulate"}, IO{Err: &complaint}); code != 2 ||
		!strings.Contains(complaint.String(), "name a scenario's file") {
		t.Errorf("exit %d, %q", code, complaint.String())
	}
}
