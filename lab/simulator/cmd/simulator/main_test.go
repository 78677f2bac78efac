package main

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

// execute runs the command with these arguments.
func execute(t *testing.T, args ...string) (out, complaint string) {
	t.Helper()
	var stdout bytes.Buffer
	cmd := command(&stdout)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		complaint = err.Error()
	}
	return stdout.String(), complaint
}

// played runs the command on a scenario of this text.
func played(t *testing.T, text string, flags ...string) (out, complaint string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return execute(t, append([]string{path}, flags...)...)
}

// TIER-17, TIER-18: what comes out as expected is success, what does not is one clear line and failure.
func TestSimulate(t *testing.T) {
	out, complaint := played(t, calmScenario)
	if complaint != "" || !strings.Contains(out, "gas saved") ||
		!strings.Contains(out, "as expected (1 expectations)") {
		t.Errorf("%q\n%s", complaint, out)
	}
	out, complaint = played(t, strings.Replace(calmScenario, "at_least = 100", "at_most = 0", 1))
	if !strings.Contains(complaint, "scenario: 1 expectations are not met") ||
		!strings.Contains(out, "executed_by of tier 1 is 100 %, expected at most 0 %") {
		t.Errorf("%q\n%s", complaint, out)
	}
}
