package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/lab/embedded/postgres"
	"perpkeeper/pkg/transport/transporttest"
)

// Pair is a primary and a standby that follows it, behind one address that leads to the primary until Promote. Both end
// with the test.
type Pair struct {
	tb               testing.TB
	primary, standby *postgres.Server
	way              *transporttest.Relay // of clients
}

// database is the name of the one that a Pair holds, migrated.
const database = "keeper"

// NewPair starts both.
func NewPair(tb testing.TB) *Pair {
	tb.Helper()
	p := &Pair{tb: tb}
	var dirs [2]string
	for i := range dirs { // the server's user cannot enter the test's own
		dir, err := os.MkdirTemp("", "pair") //nolint:usetesting // see above
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = os.RemoveAll(dir) })
		dirs[i] = dir
	}
	p.primary = p.start(dirs[0])
	p.exec(p.primary, "", "CREATE DATABASE "+database)
	if err := migrate(tb.Context(), p.primary.URL(database)); err != nil {
		tb.Fatal(err)
	}
	p.way = transporttest.NewRelay(tb, p.host(p.primary))
	p.copy(dirs[0], dirs[1])
	p.standby = p.start(dirs[1])
	return p
}

func (p *Pair) start(dir string) *postgres.Server {
	p.tb.Helper()
	s, err := postgres.Start(postgres.Config{DataDir: dir, NoSync: true})
	if err != nil {
		p.tb.Fatal(err)
	}
	p.tb.Cleanup(func() { _ = s.Stop() })
	return s
}

func (p *Pair) address(s *postgres.Server) *url.URL {
	p.tb.Helper()
	at, err := url.Parse(s.URL(database))
	if err != nil {
		p.tb.Fatal(err)
	}
	return at
}

func (p *Pair) host(s *postgres.Server) string { return p.address(s).Host }

// copy takes a base backup of the primary, made a standby's.
func (p *Pair) copy(from, to string) {
	p.tb.Helper()
	conn, err := pgx.Connect(p.tb.Context(), p.primary.URL(""))
	if err != nil {
		p.tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var label string
	if _, err := conn.Exec(p.tb.Context(), "SELECT pg_backup_start('pair', true)"); err != nil {
		p.tb.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		p.tb.Fatal(err)
	}
	if err := conn.QueryRow(p.tb.Context(), "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
		p.tb.Fatal(err)
	}
	at := p.address(p.primary)
	password, _ := at.User.Password()
	data := filepath.Join(to, "data")
	for name, text := range map[string]string{"backup_label": label, "standby.signal": "",
		"postgresql.auto.conf": fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=%s password=%s'\n"+
			"wal_retrieve_retry_interval = '100ms'\n",
			at.Hostname(), at.Port(), at.User.Username(), password)} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			p.tb.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil {
		p.tb.Fatal(err)
	}
	p.own(filepath.Join(from, "data"), to)
}

// own gives a copy to the user of the original.
func (p *Pair) own(original, to string) {
	p.tb.Helper()
	info, err := os.Stat(original)
	if err != nil {
		p.tb.Fatal(err)
	}
	of, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return
	}
	err = filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700) //nolint:gosec // a folder
		}
		if err != nil {
			return err
		}
		return os.Chown(path, int(of.Uid), int(of.Gid)) //nolint:gosec // nobody else writes there
	})
	if err != nil {
		p.tb.Fatal(err)
	}
}

// URL is the one address.
func (p *Pair) URL() string {
	at := p.address(p.primary)
	at.Host = p.way.Addr()
	return at.String()
}

// Promote makes the standby the primary, with all there is. New connections go to it; the old primary stays up, and only
// reads.
func (p *Pair) Promote() {
	p.tb.Helper()
	p.exec(p.primary, "", "ALTER SYSTEM SET default_transaction_read_only = on")
	p.exec(p.primary, "", "SELECT pg_reload_conf()")
	p.follow()
	p.exec(p.standby, "", "SELECT pg_promote(true, 60)")
	p.way.To(p.host(p.standby))
}

// follow waits until the standby has what the primary has.
func (p *Pair) follow() {
	p.tb.Helper()
	var at string
	p.ask(p.primary, &at, "SELECT pg_current_wal_flush_lsn()::text")
	for behind := true; behind; {
		p.ask(p.standby, &behind, "SELECT coalesce(pg_last_wal_replay_lsn() < '"+at+"', true)")
	}
}

// Exec runs a statement in the database of the server that is, or was, the primary at the start.
func (p *Pair) Exec(statement string) { p.exec(p.primary, database, statement) }

func (p *Pair) exec(s *postgres.Server, name, statement string) {
	p.tb.Helper()
	p.onServer(s, name, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement)
		return err
	})
}

func (p *Pair) ask(s *postgres.Server, into any, question string) {
	p.tb.Helper()
	p.onServer(s, "", func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, question).Scan(into)
	})
}

func (p *Pair) onServer(s *postgres.Server, name string, do func(context.Context, *pgx.Conn) error) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.tb.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL(name))
	if err == nil {
		err = do(ctx, conn)
		_ = conn.Close(ctx)
	}
	if err != nil {
		p.tb.Fatal(err)
	}
}
