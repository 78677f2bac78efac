package failpoint

import (
	"os/exec"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]point{
		"": {}, "a": {"a", 1}, "a:1": {"a", 1}, "scanner.claim.before:17": {"scanner.claim.before", 17},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{":", ":1", "a:", "a:0", "a:-1", "a:x", "a:1:2"} {
		if got, err := parse(text); err == nil || !strings.Contains(err.Error(), "want name:n") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// The kill is in builds with the tag only, so its test is run as one.
func TestWithTheTag(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-tags=failpoint", "-run=^TestHit$",
		".").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHit") {
		t.Fatalf("%v\n%s", err, out)
	}
}
