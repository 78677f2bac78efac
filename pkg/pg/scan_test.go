package pg_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// growing are the tables that get a row for each job or transaction, forever.
var growing = []string{"tx_intent", "signed_tx", "tx_receipt", "signer_nonce_allocation", "preflight_check"}

// wholesale are the statements that may read a growing table from end to end: those of an operator's command, never
// those of a process at work.
var wholesale = []string{"attempts of jobs", "call off", "why not called off", "liquidations",
	"lock pause", "pending liquidations"}

// scan is a line of a plan that reads a table, through an index or not. The condition by which an index finds rows
// stands in the next line.
var scan = regexp.MustCompile(`(?:Seq|Index|Index Only) Scan(?: Backward)?(?: using (\w+))? on (\w+)`)

// No statement looks through all that the keeper ever did: where the planner has been told to avoid that, it could only
// do so because no index serves.
func TestNoStatementScansWhatGrows(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(),
		"SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	partial := partialIndexes(t, conn)
	for name, text := range pg.StatementTexts() {
		for _, table := range scanned(t, conn, text, partial) {
			if slices.Contains(growing, table) && !slices.Contains(wholesale, name) {
				t.Errorf("statement %q scans %s", name, table)
			}
		}
	}
	if got := scanned(t, conn, `SELECT hash FROM keeper.signed_tx WHERE gas = $1`, partial); !slices.Equal(got,
		[]string{"signed_tx"}) {
		t.Errorf("a statement without an index scans %v", got)
	}
}

// partialIndexes hold few rows of a growing table each, those in some state, so that reading all of one is no looking
// through all that ever was.
func partialIndexes(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(),
		`SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indpred IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}

// scanned are the tables that a statement's generic plan scans.
func scanned(t *testing.T, conn *pgx.Conn, text string, partial []string) (tables []string) {
	t.Helper()
	described, err := conn.Prepare(t.Context(), "judged", text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Deallocate(t.Context(), "judged"); err != nil {
			t.Fatal(err)
		}
	}()
	if !explained.MatchString(text) {
		return nil
	}
	nothing := strings.TrimSuffix(strings.Repeat("NULL, ", len(described.ParamOIDs)), ", ")
	if nothing != "" {
		nothing = "(" + nothing + ")"
	}
	rows, err := conn.Query(t.Context(), fmt.Sprintf("EXPLAIN EXECUTE judged%s", nothing))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for i, line := range lines {
		m := scan.FindStringSubmatch(line)
		sought := i+1 < len(lines) && strings.Contains(lines[i+1], "Index Cond:")
		if m != nil && !sought && !slices.Contains(partial, m[1]) {
			tables = append(tables, m[2])
		}
	}
	return tables
}

// explained are the statements that have a plan.
var explained = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b`)
