package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"perpkeeper/pkg/perp"
)

// Whoever adds a kind and forgets its descriptor is told here.
func TestEveryKindIsDescribed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []Kind
	ast.Inspect(file, func(n ast.Node) bool {
		if v, is := n.(*ast.ValueSpec); is {
			if kind, is := v.Type.(*ast.Ident); is && kind.Name == "Kind" {
				if literal, is := v.Values[0].(*ast.BasicLit); is {
					name, _ := strconv.Unquote(literal.Value)
					declared = append(declared, Kind(name))
				}
			}
		}
		return true
	})
	literals := len(declared)
	for _, k := range perp.RequestKinds() {
		declared = append(declared, OfRequest(k))
	}
	if literals == 0 || len(declared) != len(Kinds()) {
		t.Errorf("declared are %v, described are %v", declared, Kinds())
	}
	for _, k := range declared {
		d, known := Describe(k)
		if !known || d.Lane == "" || d.Key == 0 || len(d.Classes) == 0 || !slices.IsSorted(d.Classes) {
			t.Errorf("%s is described as %+v, %t", k, d, known)
		}
	}
	if d, known := Describe("?"); known || Kind("?").Names() != 0 {
		t.Errorf("a kind that nobody knows: %+v", d)
	}
}
