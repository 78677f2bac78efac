package pg

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Only the chain closes a position or an order (TIER-4, LIQ-8): what sender, planner and operators store is written in
// files of their own, and none of their statements writes a table of the derived state. An import fills a generation
// that nobody reads yet with what the fold has written in another.
func TestOnlyTheFoldWritesState(t *testing.T) {
	below, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, below...)
	writes := regexp.MustCompile(
		`(?i)(insert\s+into|update|delete\s+from|merge\s+into|truncate|copy)\s+(only\s+)?\{state\}`)
	fold := regexp.MustCompile(
		`^(journal|commit|undo|partition|offset|rows|rowset|generation|schema|checksum|progress|source|dead_letter` +
			`|statement|layout|restore)`)
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !writes.Match(text) {
			continue
		}
		found++
		if !fold.MatchString(name) {
			t.Errorf("%s writes derived state: %s", name, writes.Find(text))
		}
	}
	if found == 0 {
		t.Error("no file writes derived state: the search has gone blind")
	}
}
