// Package arch enforces the import table of docs/architecture.md by parsing the source files themselves. (A test that
// asks the go command instead is cached by the go command, and passes on a violation.)
package arch

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

const module = "perpkeeper/"

// room is one row of the import table.
type room struct {
	// Path is a folder of the module; a trailing "/..." takes in the folders below it.
	Path string
	// May lists the folders of this module that the room's code may import, with the same wildcard.
	May []string
}

// vendor is a third-party module that only some rooms may name.
type vendor struct {
	Prefix string
	Only   []string
	Why    string
	// Tests says that any test may name it: the tests' neighbours (an in-process chain) speak its types.
	Tests bool
}

// table is what may import what.
type table struct {
	Rooms   []room
	Vendors []vendor
}

// violation is one import that the table forbids.
type violation struct {
	File   string
	Import string
	Why    string
}

// String names file, import and reason in one line.
func (v violation) String() string { return fmt.Sprintf("%s imports %s: %s", v.File, v.Import, v.Why) }

// Check parses the imports of every Go file of the tree. Files of tests are held to the vendor rows only: a test may
// start the real neighbours of its room.
func (t table) Check(tree fs.FS) ([]violation, error) {
	var found []violation
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" ||
			d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		vs, err := t.checkFile(tree, path)
		found = append(found, vs...)
		return err
	})
	return found, err
}

func (t table) checkFile(tree fs.FS, path string) ([]violation, error) {
	source, err := fs.ReadFile(tree, path)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", path, err)
	}
	var found []violation
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", path, err)
		}
		if why := t.refuse(path, imported); why != "" {
			found = append(found, violation{path, imported, why})
		}
	}
	return found, nil
}

func (t table) refuse(file, imported string) string {
	folder := file[:max(strings.LastIndex(file, "/"), 0)]
	inner, own := strings.CutPrefix(imported, module)
	if !own {
		return t.refuseVendor(folder, imported, strings.HasSuffix(file, "_test.go"))
	}
	if strings.HasSuffix(file, "_test.go") {
		return ""
	}
	room := t.room(folder)
	if room == nil {
		return "the folder " + folder + " has no row in the import table"
	}
	if match(room.Path, inner) || matchAny(room.May, inner) {
		return "" // parts of one room may see each other
	}
	return room.Path + " may not see " + inner
}

func (t table) refuseVendor(folder, imported string, test bool) string {
	for _, v := range t.Vendors {
		if (imported == v.Prefix || strings.HasPrefix(imported, v.Prefix+"/")) && !matchAny(v.Only, folder) &&
			!(v.Tests && test) {
			return v.Why
		}
	}
	return ""
}

// room returns the row with the longest path that matches.
func (t table) room(folder string) *room {
	var best *room
	for i, r := range t.Rooms {
		if match(r.Path, folder) && (best == nil || len(r.Path) > len(best.Path)) {
			best = &t.Rooms[i]
		}
	}
	return best
}

func matchAny(patterns []string, folder string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, folder) })
}

func match(pattern, folder string) bool {
	root, deep := strings.CutSuffix(pattern, "/...")
	return folder == root || deep && strings.HasPrefix(folder, root+"/")
}
