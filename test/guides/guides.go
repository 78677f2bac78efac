// Package guides holds the guides of docs/guides, and CONTRIBUTING.md, against the tree: what they name is there.
package guides

import (
	"cmp"
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
	placed = regexp.MustCompile(`^(pkg|services|lab|test|docs|deploy)/[\w./-]+$`)
	// A symbol has a capital somewhere, as Go's names have that stand alone in a text, or ends as a call: Plugin,
	// source.Plugin, stateLayout, drain.pass().
	symbol = regexp.MustCompile(`^([a-z]\w*\.)?([A-Za-z]\w*)(\.[A-Za-z]\w*)?(\(\))?$`)
)

// check reads documents and names everything in backquotes that is a place of the tree and is not there, and every Go
// name that is not declared in a place that its line names or, where it names none, anywhere in the tree.
func check(tree fs.FS, documents ...string) (problems []string, err error) {
	s := sources{tree, map[string]*source{}}
	for _, d := range documents {
		found, err := s.check(d)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

func (s sources) check(document string) (problems []string, err error) {
	text, err := fs.ReadFile(s.tree, document)
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
			case m != nil && (strings.ToLower(q[1]) != q[1] || m[4] != ""):
				names = append(names, strings.TrimPrefix(m[2]+m[3], "."))
			}
		}
		complain := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%s:%d: ", document, number)+fmt.Sprintf(format, args...))
		}
		var folders []string
		for _, p := range places {
			info, err := fs.Stat(s.tree, path.Clean(p))
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
			folders = []string{"pkg", "services", "lab", "test"}
		}
		for _, name := range names {
			found, err := s.declared(folders, name)
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

// sources are the Go files of a tree. Each is read once, and parsed once if it may declare what is looked for.
type sources struct {
	tree fs.FS
	read map[string]*source // by path
}

type source struct {
	text   string
	parsed *ast.File // nil before anybody asked
}

// declared tells whether a name, or Type.Name, is declared in a folder or below it.
func (s sources) declared(folders []string, name string) (found bool, err error) {
	for _, folder := range folders {
		err = fs.WalkDir(s.tree, folder, func(p string, d fs.DirEntry, err error) error {
			if err != nil || found || d.IsDir() || !strings.HasSuffix(p, ".go") {
				return err
			}
			found, err = s.declares(p, name)
			return err
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (s sources) declares(p, name string) (found bool, err error) {
	f := s.read[p]
	if f == nil {
		text, err := fs.ReadFile(s.tree, p)
		if err != nil {
			return false, err
		}
		f = &source{text: string(text)}
		s.read[p] = f
	}
	if !strings.Contains(f.text, name[strings.LastIndexByte(name, '.')+1:]) {
		return false, nil
	}
	if f.parsed == nil {
		if f.parsed, err = parser.ParseFile(token.NewFileSet(), p, f.text, parser.SkipObjectResolution); err != nil {
			return false, err
		}
	}
	return declares(f.parsed, name), nil
}

// declares tells whether a file declares a name: a function, method, type, value, field or method of an interface. Of
// Type.Method it asks for the method of that type, unless what is before the point is the file's package.
func declares(file *ast.File, name string) (found bool) {
	of, last, pointed := strings.Cut(name, ".")
	if !pointed || of == file.Name.Name {
		of, last = "", cmp.Or(last, name)
	}
	is := func(id *ast.Ident) bool { return id != nil && id.Name == last }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			found = found || is(n.Name) && (of == "" || receiver(n) == of)
			return false // what is inside has no meaning elsewhere
		case *ast.TypeSpec:
			found = found || of == "" && is(n.Name)
			if of != "" && n.Name.Name != of {
				return false
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				found = found || of == "" && is(id)
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

// receiver is the name of the type that a function is a method of; empty for none.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if pointer, is := t.(*ast.StarExpr); is {
		t = pointer.X
	}
	if generic, is := t.(*ast.IndexExpr); is {
		t = generic.X
	}
	id, _ := t.(*ast.Ident)
	return id.Name
}
