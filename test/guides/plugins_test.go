package guides

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Operators find every plug-in where they look: in the table of its kind, and in the example of a region's file.
func TestPluginsAreTold(t *testing.T) {
	const example = "deploy/compose/region.toml.example"
	for _, kind := range []struct {
		folder string
		beside string // what is no plug-in there
		table  string
		row    func(name string) *regexp.Regexp
		line   func(name string) *regexp.Regexp
	}{
		{"pkg/notify", "receivers", "docs/runbooks/monitor.md", matches("(?m)^\\| `\\[\\[notify\\.NAME\\]\\]` \\|"),
			matches(`(?m)^#\[\[notify\.NAME\]\]`)},
		{"pkg/price/source", "sourcetest", "pkg/price/source/doc.go", matches(`(?m)^//\tNAME `),
			matches(`(?m)^#   NAME `)},
	} {
		table, lines := read(t, kind.table), read(t, example)
		entries, err := os.ReadDir("../../" + kind.folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := e.Name()
			if !e.IsDir() || name == kind.beside {
				continue
			}
			if !kind.row(name).MatchString(table) {
				t.Errorf("%s/%s has no row in the table of %s", kind.folder, name, kind.table)
			}
			if !kind.line(name).MatchString(lines) {
				t.Errorf("%s/%s is not in %s: show how it is configured", kind.folder, name, example)
			}
		}
	}
}

// matches makes expressions of one in which NAME stands for a name.
func matches(expression string) func(name string) *regexp.Regexp {
	return func(name string) *regexp.Regexp {
		return regexp.MustCompile(strings.ReplaceAll(expression, "NAME", regexp.QuoteMeta(name)))
	}
}
