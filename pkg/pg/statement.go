package pg

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Statement is one registered line of SQL. {state} in its text stands for the schema of a generation.
type Statement struct {
	name, text string
}

// statements holds every statement of the package by name. A test prepares each of them against the migrated schema,
// and another one finds SQL that reaches the driver past this list.
var statements = map[string]*Statement{}

// Register makes a statement out of its text. It is called for package variables only, so that the list is complete
// before anything runs.
func Register(name, text string) *Statement {
	if _, taken := statements[name]; taken {
		panic("pg: two statements are called " + name)
	}
	s := &Statement{name: name, text: text}
	statements[name] = s
	return s
}

// StatementTexts are the registered statements of this package and of all below it that a program has, by name, as they
// are for generation 1. Tests go through them.
func StatementTexts() map[string]string {
	texts := map[string]string{}
	for name, s := range statements {
		texts[name] = s.In(1)
	}
	return texts
}

// SQL returns the text of a statement over schema keeper.
func (s *Statement) SQL() string { return s.text }

// In returns the text of a statement over a generation's schema. A statement over two has {other} for the schema of the
// second one.
func (s *Statement) In(generation int, second ...int) string {
	other := append(second, generation)[0]
	return strings.NewReplacer("{state}", schemaName(generation), "{other}", schemaName(other)).Replace(s.text)
}

// schemaName is the schema of a generation, ready to stand in SQL.
func schemaName(generation int) string {
	return pgx.Identifier{fmt.Sprintf("state_g%d", generation)}.Sanitize()
}
