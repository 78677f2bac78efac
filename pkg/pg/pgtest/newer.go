package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// NewerURL is the address of a fresh database whose schema a newer build has migrated, and which has
// taken away what this build uses.
func NewerURL(tb testing.TB) string {
	tb.Helper()
	address := URL(tb)
	conn, err := pgx.Connect(tb.Context(), address)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(tb.Context()) }()
	if _, err := conn.Exec(tb.Context(),
		`INSERT INTO public.perpkeeper_schema (version_id, is_applied) VALUES (99999, true);
		UPDATE keeper.oldest_build SET version = 99999`); err != nil {
		tb.Fatal(err)
	}
	return address
}
