package requirements

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// idPattern matches the ids of requirements: TIER-9, and S7 for the cases of the fence. It also matches standards like
// EIP-1559.
var idPattern = regexp.MustCompile(`\b(?:[A-Z]{2,}-[0-9]+|S[0-9]{1,2})\b`)

// Place is where something stands: a folder, and the name of a file or of a function in it.
type Place struct{ Folder, Name string }

// Use is an id and the file that names it.
type Use struct{ ID, File string }

// Sources is what the files of a repository say about requirements.
type Sources struct {
	// Implementations are the files of each id, Proofs its tests, both sorted.
	Implementations, Proofs map[string][]Place
	// Uses are all mentions, also those in documents and in what helps tests.
	Uses []Use

	suites   map[string][]proof // by folder
	imported map[string]bool    // folders of packages that tests import
}

// proof is a function of a suite that names an id.
type proof struct {
	id string
	at Place
}

// module is the prefix of imports of this module.
const module = "perpkeeper/"

// Scan reads every file of a repository that has comments we know how to read. Folders of other people's and of
// generated files are left out.
func Scan(tree fs.FS) (Sources, error) {
	s := Sources{
		Implementations: map[string][]Place{}, Proofs: map[string][]Place{},
		suites: map[string][]proof{}, imported: map[string]bool{},
	}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && isForeign(name):
			return fs.SkipDir
		case d.IsDir() || name == documentPath || name == ListPath:
			return nil
		}
		return s.read(tree, name)
	})
	if err != nil {
		return s, err
	}
	for folder, proofs := range s.suites {
		for _, p := range proofs {
			if s.imported[folder] {
				s.Proofs[p.id] = append(s.Proofs[p.id], p.at)
			}
		}
	}
	for _, places := range []map[string][]Place{s.Implementations, s.Proofs} {
		for id := range places {
			slices.SortFunc(places[id], comparePlaces)
			places[id] = slices.Compact(places[id])
		}
	}
	return s, nil
}

func isForeign(folder string) bool {
	base := path.Base(folder)
	return strings.HasPrefix(base, ".") || slices.Contains([]string{"node_modules", "testdata"}, base) ||
		slices.Contains([]string{"bin", "test/requirements"}, folder)
}

func comparePlaces(a, b Place) int {
	return strings.Compare(a.Folder+"\x00"+a.Name, b.Folder+"\x00"+b.Name)
}

func (s *Sources) read(tree fs.FS, name string) error {
	isGo, mark := strings.HasSuffix(name, ".go"), commentMark(name)
	if !isGo && mark == "" && path.Ext(name) != ".md" {
		return nil
	}
	content, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	switch {
	case isGo:
		return s.readGo(name, content)
	case mark != "":
		s.readScript(name, string(content), mark)
	default:
		s.use(name, string(content))
	}
	return nil
}

// commentMark is what begins a comment in a file that is not Go, or empty where nothing of ours is said in comments.
func commentMark(name string) string {
	switch path.Ext(name) {
	case ".sql":
		return "--"
	case ".yml", ".yaml", ".sh", ".example", ".toml":
		return "#"
	}
	if base := path.Base(name); base == "Makefile" || base == "Dockerfile" {
		return "#"
	}
	return ""
}

// use notes every id of a text, and returns them.
func (s *Sources) use(name, text string) []string {
	ids := idPattern.FindAllString(text, -1)
	for _, id := range ids {
		s.Uses = append(s.Uses, Use{id, name})
	}
	return ids
}

func (s *Sources) readScript(name, content, mark string) {
	for line := range strings.Lines(content) {
		_, comment, _ := strings.Cut(line, mark)
		for _, id := range s.use(name, comment) {
			s.implemented(id, name)
		}
	}
}

// implemented notes a file that implements a requirement, unless it is a test or helps tests.
func (s *Sources) implemented(id, name string) {
	folder := path.Dir(name)
	if strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "lab/simulator/") ||
		strings.HasSuffix(name, "_test.go") ||
		strings.HasSuffix(folder, "/tests") || isSuite(folder) {
		return
	}
	s.Implementations[id] = append(s.Implementations[id], Place{folder, path.Base(name)})
}

// isSuite tells whether a folder holds tests that several implementations must pass, like pkg/txmgr/lease/leasetest.
func isSuite(folder string) bool {
	return strings.HasSuffix(folder, "test") && strings.HasPrefix(folder, "pkg/")
}

func (s *Sources) readGo(name string, content []byte) error {
	mode := parser.ParseComments | parser.SkipObjectResolution
	if !idPattern.Match(content) {
		mode = parser.ImportsOnly // most files name no id
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, content, mode)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", name, err)
	}
	if strings.HasSuffix(name, "_test.go") {
		s.noteImports(file)
	}
	for _, group := range file.Comments {
		for _, id := range s.use(name, group.Text()) {
			s.implemented(id, name)
		}
	}
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		from := f.Pos()
		if f.Doc != nil {
			from = f.Doc.Pos()
		}
		for _, id := range idPattern.FindAllString(string(content[from-1:f.End()-1]), -1) {
			s.proven(id, name, f)
		}
	}
	return nil
}

func (s *Sources) noteImports(file *ast.File) {
	for _, spec := range file.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
			s.imported[strings.TrimPrefix(imported, module)] = true
		}
	}
}

// proven notes a test that names a requirement. Functions that only help tests prove nothing.
func (s *Sources) proven(id, name string, f *ast.FuncDecl) {
	folder, at := path.Dir(name), Place{path.Dir(name), f.Name.Name}
	switch {
	case strings.HasSuffix(name, "_test.go") && isTest(f):
		s.Proofs[id] = append(s.Proofs[id], at)
	case isSuite(folder):
		s.suites[folder] = append(s.suites[folder], proof{id, at})
	}
}

// isTest tells whether go test runs a function: TestX(*testing.T) or FuzzX(*testing.F), not TestMain.
func isTest(f *ast.FuncDecl) bool {
	name := f.Name.Name
	isNamed := strings.HasPrefix(name, "Test") && name != "TestMain" || strings.HasPrefix(name, "Fuzz")
	return isNamed && f.Recv == nil && f.Type.Params.NumFields() == 1
}
