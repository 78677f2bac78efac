package pg

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statement is one registered line of SQL. {state} in its text stands for the schema of a generation.
type statement struct {
	name, text string
}

// statements holds every statement of the package by name. A test prepares each of them against the migrated schema,
// and another one finds SQL that reaches the driver past this list.
var statements = map[string]*statement{}

// register makes a statement out of its text. It is called for package variables only, so that the list is complete
// before anything runs.
func register(name, text string) *statement {
	if _, taken := statements[name]; taken {
		panic("pg: two statements are called " + name)
	}
	s := &statement{name: name, text: text}
	statements[name] = s
	return s
}

// sql returns the text of a statement over schema keeper.
func (s *statement) sql() string { return s.text }

// in returns the text of a statement over a generation's schema.
func (s *statement) in(generation int) string {
	return strings.ReplaceAll(s.text, "{state}", schemaName(generation))
}

// schemaName is the schema of a generation, ready to stand in SQL.
func schemaName(generation int) string {
	return pgx.Identifier{fmt.Sprintf("state_g%d", generation)}.Sanitize()
}
