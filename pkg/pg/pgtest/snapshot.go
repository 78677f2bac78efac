package pgtest

import (
	"context"
	"net/url"
	"strings"
	"testing"
)

// Snapshot keeps a database of the test server as it stands now and returns what puts it back, as a backup that is
// restored does. Whoever is connected is cut off both times, and finds the other state when it comes again.
func Snapshot(tb testing.TB, databaseURL string) (restore func()) {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	address, err := url.Parse(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	name := strings.TrimPrefix(address.Path, "/")
	kept := name + "_kept"
	run := func(ctx context.Context, statements ...string) {
		tb.Helper()
		for _, statement := range statements {
			if err := s.exec(ctx, statement); err != nil {
				tb.Fatalf("%s: %v", statement, err)
			}
		}
	}
	alone := []string{
		"ALTER DATABASE " + name + " ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '" + name + "'",
	}
	run(tb.Context(), append(alone, "CREATE DATABASE "+kept+" TEMPLATE "+name,
		"ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")...)
	tb.Cleanup(func() { run(context.Background(), "DROP DATABASE IF EXISTS "+kept+" WITH (FORCE)") })
	return func() {
		tb.Helper()
		run(tb.Context(), append(alone, "DROP DATABASE "+name, "ALTER DATABASE "+kept+" RENAME TO "+name)...)
	}
}
