package pg_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Only the comparison may take as long as it takes: what switches afterwards holds locks that others wait for.
func TestSwitchIsBoundedAfterItsComparison(t *testing.T) {
	url, _, copied := copiedHistory(t)
	cfg := configFor(url)
	cfg.StatementTimeout = 200 * time.Millisecond
	hold(t, url, "LOCK keeper.active_generation IN SHARE MODE")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := openConfig(t, cfg).Switch(ctx, copied, "")
	if err == nil || !strings.Contains(err.Error(), "statement timeout") {
		t.Fatalf("waiting for the row of the active generation ended with %v", err)
	}
}

// hold runs a statement in a transaction that stays open until release.
func hold(t *testing.T, url, sql string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), sql)
	must(t, err)
	release = sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
	t.Cleanup(release)
	return release
}

// awaitTrue asks until something is so; the server does the waiting.
func awaitTrue(t *testing.T, url, question string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	for begun, so := time.Now(), false; !so; {
		must(t, conn.QueryRow(t.Context(), "SELECT ("+question+") FROM pg_sleep(0.02)").Scan(&so))
		if time.Since(begun) > time.Minute {
			t.Fatalf("it never came about: %s", question)
		}
	}
}
