package compose

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The engine test runs the blocks of docs/operating.md that are marked as commands. There are no others, and what it
// does by hand between them is known to it.
func TestOperatingIsRun(t *testing.T) {
	document := read(t, filepath.Join(root, "docs/operating.md"))
	legs := read(t, filepath.Join(root, "test/engine/legs/operating.sh"))
	open, blocks := false, 0
	for line := range strings.Lines(document) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(strings.TrimSpace(line), "```") {
			continue
		}
		if open = !open; !open {
			continue
		}
		if line != "```sh" && line != "```sh external" {
			t.Errorf("%q: a block that nobody runs (mark it sh, or sh external)", line)
		}
		blocks++
	}
	if blocks < 10 {
		t.Errorf("only %d blocks found", blocks)
	}
	for _, by := range regexp.MustCompile(`(?m)^<!-- engine test: (\S+) -->$`).FindAllStringSubmatch(document, -1) {
		if !strings.Contains(legs, "before_"+by[1]+"()") {
			t.Errorf("the engine test knows no %s", by[1])
		}
	}
}
