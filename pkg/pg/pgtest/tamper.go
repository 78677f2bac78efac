package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Tamper changes a database behind the keeper's back, to where no keeper would bring it by itself: no trigger refuses
// it anything.
func Tamper(tb testing.TB, databaseURL string, statements ...string) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(tb.Context()) }()
	for _, s := range append([]string{`SET session_replication_role = replica`}, statements...) {
		if _, err := conn.Exec(tb.Context(), s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}
