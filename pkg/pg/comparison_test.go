package pg_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
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

// The transaction that shares what it sees waits for those that compare the last tables, for longer than a silent
// client may hold a transaction open.
func TestComparisonWaitsForItsSlowestTable(t *testing.T) {
	url, _, copied := copiedHistory(t)
	cfg := configFor(url)
	cfg.IdleInTransactionTimeout = time.Second
	hurried := openConfig(t, cfg)
	first, second := perp.Tables()[0], perp.Tables()[1]
	for _, order := range [][2]perp.Table{{first, second}, {second, first}} { // either may be the sharing one's
		sooner := hold(t, url, fmt.Sprintf("LOCK state_g2.%s", order[0]))
		later := hold(t, url, fmt.Sprintf("LOCK state_g2.%s", order[1]))
		ended := make(chan error, 1)
		go func() {
			c, err := hurried.Compare(t.Context(), 1, copied, false)
			if err == nil && (!c.SamePlace() || len(c.Differing()) > 0) {
				err = fmt.Errorf("differing %v", c.Differing())
			}
			ended <- err
		}()
		awaitTrue(t, url, "(SELECT count(*) FROM pg_locks WHERE NOT granted) = 2")
		sooner()
		execute(t, url, "SELECT pg_sleep(1.5)")
		later()
		must(t, <-ended)
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
	for so := false; !so; {
		must(t, conn.QueryRow(t.Context(), "SELECT ("+question+") FROM pg_sleep(0.02)").Scan(&so))
	}
}
