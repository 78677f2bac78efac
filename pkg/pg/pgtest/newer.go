package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// NewerURL is the address of a fresh database whose schema a newer build has migrated.
func NewerURL(t testing.TB) string {
	t.Helper()
	address := URL(t)
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "INSERT INTO public.perpkeeper_schema (version_id, is_applied) VALUES (99999, true)"); err != nil {
		t.Fatal(err)
	}
	return address
}
