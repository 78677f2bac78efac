package pg_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

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

// importing begins an import that brings nothing before it is told to, in a goroutine of its own.
func importing(t *testing.T, db *pg.DB, bring func(context.Context, int, *pg.Import) error) (goOn func(),
	ended <-chan error) {
	t.Helper()
	started, told, over := make(chan struct{}, 2), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := db.Import(t.Context(), 2, nil, func(ctx context.Context, part int, to *pg.Import) error {
			started <- struct{}{}
			<-told
			return bring(ctx, part, to)
		})
		over <- err
	}()
	select {
	case <-started:
	case err := <-over:
		t.Fatalf("the import ended before it began: %v", err)
	}
	return func() { close(told) }, over
}

// A copy becomes a generation only while nobody else changes their list: who gives rights in all of them misses none.
func TestImportPublishesUnderTheLock(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), db)
	must(t, err)
	goOn, ended := importing(t, db, all.into(-1))
	release := hold(t, url, "SELECT pg_advisory_xact_lock(hashtext('perpkeeper generations'))")
	goOn()
	const published = "EXISTS (SELECT FROM keeper.generation WHERE number = 2 AND dropped_at IS NULL)"
	awaitTrue(t, url, "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted) OR "+published)
	if query[bool](t, url, "SELECT "+published) {
		t.Error("a generation was published while another process changed their list")
	}
	release()
	must(t, <-ended)
}

// What the server does for a process that is gone ends, however long it would take. What is under way all the same
// keeps the next import from its work, and is named.
func TestOrphanOfAnImportEnds(t *testing.T) {
	url := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, url)
	finalHistory(t, open(t, url))
	goOn, ended := importing(t, open(t, proxy.URL()), func(ctx context.Context, _ int, to *pg.Import) error {
		_, err := to.Copy(ctx, string(perp.Positions), bytes.NewReader(nil))
		return err
	})
	release := hold(t, url, "LOCK TABLE state_g2.position")
	goOn()
	const copying = `EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY%'
		AND wait_event_type = 'Lock')`
	awaitTrue(t, url, copying)
	proxy.Refuse(true)
	if err := <-ended; err == nil {
		t.Fatal("a generation was made without a connection")
	}
	awaitTrue(t, url, "NOT "+copying)

	cfg := configFor(url)
	cfg.StatementTimeout = 200 * time.Millisecond
	none := func(context.Context, int, *pg.Import) error { return nil }
	_, err := openConfig(t, cfg).Import(t.Context(), 2, nil, none)
	if !pg.Refused(err) || !strings.Contains(err.Error(), "began in generation 2 is still under way") {
		t.Errorf("while something is under way: %v", err)
	}
	release()
	if _, err := open(t, url).Import(t.Context(), 2, nil, none); !pg.Refused(err) ||
		!strings.Contains(err.Error(), "offsets of 0 partitions") {
		t.Errorf("after its end: %v", err)
	}
}
