package guides

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What the guides name is there, and CONTRIBUTING.md leads to every guide.
func TestGuidesAreTrue(t *testing.T) {
	tree := os.DirFS("../..")
	entries, err := os.ReadDir("../../docs/guides")
	if err != nil || len(entries) < 5 {
		t.Fatalf("%d guides, %v", len(entries), err)
	}
	way, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	documents := []string{"CONTRIBUTING.md"}
	for _, e := range entries {
		guide := "docs/guides/" + e.Name()
		if documents = append(documents, guide); !strings.Contains(string(way), guide) {
			t.Errorf("CONTRIBUTING.md does not lead to %s", guide)
		}
	}
	problems, err := check(tree, documents...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestWhatIsNotThereIsFound(t *testing.T) {
	tree := fstest.MapFS{
		"pkg/a/a.go": {Data: []byte("package a\n\ntype Plugin struct{ Open func() }\n\nvar executions int\n")},
		"pkg/b/b.go": {Data: []byte("package b\n\nfunc TestB() { Inner := 1; _ = Inner }\n\nfunc run() {}\n")},
		"docs/g.md": {Data: []byte("`pkg/a/a.go` `Plugin` `a.Plugin` `Plugin.Open` and `pkg/a`, `make test`, " +
			"`window`\n`b.run()`\n")},
		"test/t.go":  {Data: []byte("package t\n")},
		"services/s": {},
		"lab/l":      {},
		"docs/bad.md": {Data: []byte("`pkg/gone.go`\n`pkg/b` `Plugin`\n`TestB` and `Inner`\n`b.walk()`\n" +
			"`Other.Open`\n")},
	}
	if got, err := check(tree, "docs/g.md"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	want := []string{
		"docs/bad.md:1: pkg/gone.go is not there",
		"docs/bad.md:2: no Plugin is declared in pkg/b",
		"docs/bad.md:3: no Inner is declared in pkg, services, lab, test",
		"docs/bad.md:4: no walk is declared in pkg, services, lab, test",
		"docs/bad.md:5: no Other.Open is declared in pkg, services, lab, test",
	}
	if got, err := check(tree, "docs/bad.md"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
