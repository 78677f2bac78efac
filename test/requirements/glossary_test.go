package requirements

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The glossary names the package of each term, and a package that is gone leads nowhere.
func TestGlossaryNamesPackages(t *testing.T) {
	glossary, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| (.+?) \\| .+ \\| `([a-z/]+)` \\|$")
	rows := 0
	for line := range strings.Lines(string(glossary)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| term ") {
			continue
		}
		match := row.FindStringSubmatch(line)
		if match == nil {
			t.Errorf("this row is not term, meaning, package: %s", line)
			continue
		}
		rows++
		if folder, err := os.Stat("../../" + match[2]); err != nil || !folder.IsDir() {
			t.Errorf("%s: there is no package %s", match[1], match[2])
		}
	}
	if rows < 50 {
		t.Errorf("only %d terms were found", rows)
	}
}
