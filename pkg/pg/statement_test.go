package pg_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// Every statement of the project is understood by the migrated schema.
func TestEveryStatementPrepares(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SET search_path = pg_catalog"); err != nil {
		t.Fatal(err)
	}
	if len(pg.StatementTexts()) == 0 {
		t.Fatal("no statement is registered")
	}
	for name, text := range pg.StatementTexts() {
		if _, err := conn.Prepare(t.Context(), "", text); err != nil {
			t.Errorf("statement %q: %v", name, err)
		}
	}
}

// freeSQL are the files that may hand the driver a text of their own: what is not over the migrated schema, or defines
// roles and rights, cannot be prepared against it; nor can COPY, nor SET TRANSACTION SNAPSHOT. What query.go is given
// its callers are held to.
var freeSQL = []string{"schema.go", "database.go", "roles.go", "export.go", "restore.go", "comparison.go", "query.go"}

// SQL that is not registered cannot reach the driver: every text it is given is the SQL() or In() of a statement. Nor is
// a row read in the statement that returns what it is read into.
func TestOnlyRegisteredStatementsReachTheDriver(t *testing.T) {
	for _, v := range unregistered(t, os.DirFS(".")) {
		t.Error(v)
	}
	planted := unregistered(t, plantedSource)
	if len(planted) != 5 {
		t.Errorf("of five planted violations %d were found: %v", len(planted), planted)
	}
}

// sources are the files of a tree that are neither tests nor made for them.
func sources(t *testing.T, tree fs.FS) (files []string) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasSuffix(path, "test"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The pool is for this package and those below it: who is above asks a room.
func TestOnlyTheRoomsUseThePool(t *testing.T) {
	found := 0
	for _, top := range []string{"pkg", "services"} {
		tree := os.DirFS(filepath.Join("..", "..", top))
		for _, file := range sources(t, tree) {
			text, err := fs.ReadFile(tree, file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text, []byte(".Pool()")) {
				continue
			}
			found++
			if top != "pkg" || !strings.HasPrefix(file, "pg/") {
				t.Errorf("%s/%s takes the pool of connections", top, file)
			}
		}
	}
	if found == 0 {
		t.Error("no file takes the pool: the search has gone blind")
	}
}

func unregistered(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var found []string
	for _, file := range sources(t, tree) {
		if slices.Contains(freeSQL, file) {
			continue
		}
		source, err := fs.ReadFile(tree, file)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && !lawful(call) {
				found = append(found, fmt.Sprintf("%s: SQL that is not a registered statement",
					set.Position(call.Pos())))
			}
			if end, ok := n.(*ast.ReturnStmt); ok && returnsWhatItScans(end) {
				found = append(found, fmt.Sprintf("%s: what is returned beside its Scan may be read before it",
					set.Position(end.Pos())))
			}
			return true
		})
	}
	return found
}

// lawful judges one call: the driver's methods take their SQL as the argument after the context, or as the first one of
// a batch; the functions of query.go after what they need besides.
func lawful(call *ast.CallExpr) bool {
	var name string
	switch called := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = called.Sel.Name
	case *ast.Ident:
		name = called.Name
	}
	position, runsSQL := map[string]int{"Exec": 1, "Query": 1, "QueryRow": 1, "Prepare": 2, "Queue": 0,
		"CopyTo": 2, "CopyFrom": 2, "Select": 3, "Each": 4, "List": 4, "One": 4, "Run": 2}[name]
	if !runsSQL || len(call.Args) <= position {
		return true
	}
	text, ok := call.Args[position].(*ast.CallExpr)
	if !ok {
		return false
	}
	source, ok := text.Fun.(*ast.SelectorExpr)
	return ok && (source.Sel.Name == "SQL" || source.Sel.Name == "In")
}

// returnsWhatItScans tells whether a row is read in the statement that also returns something else.
func returnsWhatItScans(end *ast.ReturnStmt) bool {
	if len(end.Results) < 2 {
		return false
	}
	call, ok := end.Results[len(end.Results)-1].(*ast.CallExpr)
	if !ok {
		return false
	}
	called, ok := call.Fun.(*ast.SelectorExpr)
	return ok && called.Sel.Name == "Scan"
}

var plantedSource = fstest.MapFS{"planted.go": {Data: []byte(`package pg
func f() { tx.Exec(ctx, "DELETE FROM x"); b.Queue(text, 1); tx.Query(ctx, s.SQL()); tx.QueryRow(ctx, s.In(1), 2)
	Select(ctx, tx, scan, "SELECT 1"); pg.List(ctx, db, "listing", scan, text); One(ctx, db, "", scan, s.SQL())
	return t, row.Scan(&t) }`)}}
