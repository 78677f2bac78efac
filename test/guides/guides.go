// Package guides holds the guides of docs/guides, and CONTRIBUTING.md, against the tree: what they name is there.
package guides

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	// A place begins with a folder of the tree.
	placed = regexp.MustCompile(`^(pkg|services|test|docs|deploy)/[\w./-]+$`)
	// A symbol has a capital somewhere, as Go's names have that stand alone in a text: Plugin, source.Plugin,
	// stateLayout.
	symbol = regexp.MustCompile(`^([a-z]\w*\.)?([A-Za-z]\w*)(\.[A-Za-z]\w*)?(\(\))?$`)
)

// Check reads a document and names everything in backquotes that is a place of the tree and is not there, and every Go
// name that is not declared in a place that its line names or, where it names none, anywhere in the tree.
func Check(tree fs.FS, document string) (problems []string, err error) {
	text, err := fs.ReadFile(tree, document)
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		var places, names []string
		for _, q := range quoted.FindAllStringSubmatch(line, -1) {
			switch m := symbol.FindStringSubmatch(q[1]); {
			case placed.MatchString(q[1]):
				places = append(places, q[1])
			case m != nil && strings.ToLower(q[1]) != q[1]:
				names = append(names, strings.TrimPrefix(m[2]+m[3], "."))
			}
		}
		complain := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%s:%d: ", document, number)+fmt.Sprintf(format, args...))
		}
		var folders []string
		for _, p := range places {
			info, err := fs.Stat(tree, path.Clean(p))
			switch {
			case err != nil:
				complain("%s is not there", p)
			case info.IsDir():
				folders = append(folders, path.Clean(p))
			default:
				folders = append(folders, path.Dir(p))
			}
		}
		if len(folders) == 0 {
			folders = []string{"pkg", "services", "test"}
		}
		for _, name := range names {
			found, err := declared(tree, folders, name)
			if err != nil {
				return nil, err
			}
			if !found {
				complain("no %s is declared in %s", name, strings.Join(folders, ", "))
			}
		}
	}
	return problems, nil
}

// declared tells whether a name, or Type.Name, is declared in a folder or below it.
func declared(tree fs.FS, folders []string, name string) (found bool, err error) {
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, folder := range folders {
		err = fs.WalkDir(tree, folder, func(p string, d fs.DirEntry, err error) error {
			if err != nil || found || d.IsDir() || !strings.HasSuffix(p, ".go") {
				return err
			}
			text, err := fs.ReadFile(tree, p)
			if err != nil || !strings.Contains(string(text), last) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), p, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			found = declares(file, last)
			return nil
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// declares tells whether a file declares a name: a function, method, type, value, field or method of an interface.
func declares(file *ast.File, name string) (found bool) {
	is := func(id *ast.Ident) bool { return id != nil && id.Name == name }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			found = found || is(n.Name)
			return false // what is inside has no meaning elsewhere
		case *ast.TypeSpec:
			found = found || is(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				found = found || is(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				found = found || is(id)
			}
		}
		return !found
	})
	return found
}
