package requirements

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Every id in use has a sentence, and every requirement has code and a test, or says why not.
func TestRequirementsHold(t *testing.T) {
	tree := os.DirFS("../..")
	list, err := Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := Scan(tree)
	if err != nil {
		t.Fatal(err)
	}
	if len(sources.Proofs) < 50 || len(sources.Implementations) < 50 {
		t.Fatalf("only %d ids with tests and %d with code were found: the sources were not read",
			len(sources.Proofs), len(sources.Implementations))
	}
	for _, problem := range list.Check(sources) {
		t.Error(problem)
	}
}

const (
	good = "[[group]]\nprefix = \"AB\"\ntitle = \"t\"\n[requirement.AB-1]\ntext = \"It works.\"\n"
	code = "package a\n\n// F works (AB-1).\nfunc F() {}\n"
	test = "package a\n\nimport \"testing\"\n\n// AB-1: it works.\nfunc TestF(t *testing.T) {}\n"
)

func house(changes map[string]string) fstest.MapFS {
	files := map[string]string{ListPath: good, "pkg/a/a.go": code, "pkg/a/a_test.go": test}
	maps.Copy(files, changes)
	tree := fstest.MapFS{}
	for name, content := range files {
		if content != "" {
			tree[name] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	return tree
}

func problems(t *testing.T, changes map[string]string) []string {
	t.Helper()
	tree := house(changes)
	list, err := Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := Scan(tree)
	if err != nil {
		t.Fatal(err)
	}
	return list.Check(sources)
}

// The check must be able to fail, each way, and lets pass what is right. What helps tests implements nothing, and a
// suite that no test imports proves nothing.
func TestPlantedProblemsAreFound(t *testing.T) {
	helper := "package a\n\n// mustWork helps (AB-1).\nfunc mustWork() {}\n"
	suite := "package atest\n\n// AB-1: it works.\nfunc works() {}\n"
	runs := "package a\n\nimport _ \"perpkeeper/pkg/a/atest\"\n"
	subtest := "package a\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { t.Run(\"AB-1: it works\", nil) }\n"
	for name, c := range map[string]struct {
		changes map[string]string
		want    string // empty: nothing is found
	}{
		"an id without a sentence": {map[string]string{"pkg/b/b.go": "package b // AB-2\n"},
			"pkg/b/b.go names AB-2, which has no sentence"},
		"an unknown prefix": {map[string]string{"pkg/b/b_test.go": "package b // XY-7\n"},
			"pkg/b/b_test.go names XY-7"},
		"a document's id": {map[string]string{"docs/a.md": "see AB-3"}, "docs/a.md names AB-3"},
		"an empty sentence": {map[string]string{ListPath: strings.ReplaceAll(good, "It works.", "")},
			"names AB-1, which has no"},
		"no implementation":   {map[string]string{"pkg/a/a.go": "package a\n"}, "AB-1 is implemented nowhere"},
		"no test":             {map[string]string{"pkg/a/a_test.go": ""}, "AB-1 is proven by no test"},
		"a helper is no test": {map[string]string{"pkg/a/a_test.go": helper}, "AB-1 is proven by no test"},
		"an id of no group": {map[string]string{ListPath: good + "[requirement.XY-1]\ntext = \"x\"\n"},
			"XY-1 belongs to no group"},
		"a case of nothing": {map[string]string{ListPath: good + "case_of = \"AB-9\"\n"}, "AB-1 is a case of AB-9"},
		"code of a test":    {map[string]string{"pkg/a/a.go": "", "test/x/x.go": code}, "AB-1 is implemented nowhere"},
		"a suite nobody runs": {map[string]string{"pkg/a/a_test.go": "", "pkg/a/atest/s.go": suite},
			"AB-1 is proven by no test"},

		"code and test":           {nil, ""},
		"a standard":              {map[string]string{"pkg/b/b.go": "package b // EIP-1559\n"}, ""},
		"a suite that is run":     {map[string]string{"pkg/a/a_test.go": runs, "pkg/a/atest/s.go": suite}, ""},
		"a subtest names it":      {map[string]string{"pkg/a/a_test.go": subtest}, ""},
		"implemented by a script": {map[string]string{"pkg/a/a.go": "", "deploy/a.yml": "a: b # AB-1\n"}, ""},
		"not met, and it says why": {map[string]string{"pkg/a/a.go": "", "pkg/a/a_test.go": "",
			ListPath: good + "not_met = \"Later.\"\n"}, ""},
	} {
		got := problems(t, c.changes)
		if c.want == "" && len(got) > 0 || c.want != "" &&
			!slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

func TestDocument(t *testing.T) {
	tree := house(nil)
	list, err := Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := Scan(tree)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := list.Write(&b, sources); err != nil {
		t.Fatal(err)
	}
	if want := "\n* **AB-1** It works. (`pkg/a`. Proof: `pkg/a` TestF)\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s\ndoes not end in %s", b.String(), want)
	}
}
