package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"strings"
)

// What a type of the sender's rooms may have. The sender was once joined by closures in one structure of many fields.
const (
	mostFields    = 15
	mostFunctions = 3
)

// checkTypes looks at every structure that the folders declare, tests left out, and says of each that has too many
// fields, or too many of function type, or that embeds the Sender, what is wrong with it. An embedded structure counts
// as one field: it is a type of its own. A section of the configuration is not looked at: its fields are the keys that
// operators write.
func checkTypes(tree fs.FS, folders ...string) (problems []string, err error) {
	for _, folder := range folders {
		files, err := parseFolder(tree, folder)
		if err != nil {
			return nil, err
		}
		functions := map[string]bool{}
		each(files, func(t *ast.TypeSpec) {
			_, is := t.Type.(*ast.FuncType)
			functions[t.Name.Name] = is
		})
		each(files, func(t *ast.TypeSpec) {
			if s, is := t.Type.(*ast.StructType); is && !isSection(s) {
				problems = append(problems, checkStruct(path.Join(folder, t.Name.Name), s, functions)...)
			}
		})
	}
	return problems, nil
}

// checkStruct says what is wrong with one structure. Functions are the names of the package's function types.
func checkStruct(name string, s *ast.StructType, functions map[string]bool) (problems []string) {
	fields, calls := 0, 0
	for _, f := range s.Fields.List {
		fields += max(1, len(f.Names))
		if len(f.Names) == 0 && typeName(f.Type) == "Sender" {
			problems = append(problems, name+" embeds the Sender")
		}
		if _, is := f.Type.(*ast.FuncType); is || functions[typeName(f.Type)] {
			calls += max(1, len(f.Names))
		}
	}
	if fields > mostFields {
		problems = append(problems, fmt.Sprintf("%s has %d fields, more than %d", name, fields, mostFields))
	}
	if calls > mostFunctions {
		problems = append(problems, fmt.Sprintf("%s has %d fields of function type, more than %d", name, calls,
			mostFunctions))
	}
	return problems
}

// typeName is the name of a type of the same package, or of a pointer to one; empty for any other.
func typeName(e ast.Expr) string {
	if p, is := e.(*ast.StarExpr); is {
		e = p.X
	}
	if id, is := e.(*ast.Ident); is {
		return id.Name
	}
	return ""
}

// isSection tells whether a structure is a section of the configuration: all its fields have a key.
func isSection(s *ast.StructType) bool {
	for _, f := range s.Fields.List {
		if f.Tag == nil || reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("toml") == "" {
			return false
		}
	}
	return len(s.Fields.List) > 0
}

// each calls visit for every type that is declared at the top of the files.
func each(files []*ast.File, visit func(*ast.TypeSpec)) {
	for _, file := range files {
		for _, d := range file.Decls {
			general, is := d.(*ast.GenDecl)
			if !is {
				continue
			}
			for _, spec := range general.Specs {
				if t, is := spec.(*ast.TypeSpec); is {
					visit(t)
				}
			}
		}
	}
}

// parseFolder parses the files of one folder, tests left out.
func parseFolder(tree fs.FS, folder string) (files []*ast.File, err error) {
	names, err := fs.Glob(tree, path.Join(folder, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 && err == nil {
		err = fmt.Errorf("%s holds no Go file", folder)
	}
	return files, err
}
