package guides

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/tier"
)

// windowTexts are the texts that say how long a tier owns a job: {1} stands for the seconds of one window, {2} for
// those of two. The guide lists them.
var windowTexts = map[string][]string{
	"README.md":            {"the backups after {1} and {2} s"},
	"docs/architecture.md": {"the Master's for the first {1} s"},
	"docs/glossary.md":     {"may execute it: {1} s each"},
	"docs/requirements.toml": {"Backup-1 at {1} s and Backup-2 at {2} s", "at the latest {2} s after its due time",
		"a window of its age ({1} s, in turn"},
	"docs/runbooks/failover.md": {"`tier.window` ({1} s)", "its first jobs at {1} s;", "comes at {1} s |",
		"its first jobs at {2} s,", "up to {1} s late"},
	"deploy/compose/region.toml.example": {`#window = "{1}s"`},
}

// TIER-1, TIER-9: the texts say the window that keepers have by themselves, and the guide leads to each of them.
func TestTextsSayTheWindow(t *testing.T) {
	const guide = "docs/guides/change-tier-timing.md"
	window := tier.DefaultConfig().Window
	seconds := strings.NewReplacer("{1}", inSeconds(window), "{2}", inSeconds(2*window))
	listed := read(t, guide)
	for document, says := range windowTexts {
		if !strings.Contains(listed, document) {
			t.Errorf("%s does not name %s, which says how long a window is", guide, document)
		}
		text := strings.Join(strings.Fields(read(t, document)), " ")
		for _, s := range says {
			if want := seconds.Replace(s); !strings.Contains(text, want) {
				t.Errorf("%s does not say %q: tier.DefaultConfig has windows of %s (see %s)", document, want, window,
					guide)
			}
		}
	}
}

// inSeconds is a duration as texts have it: 22.5 s is 22.5.
func inSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func read(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
