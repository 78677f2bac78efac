// Package pgtest gives tests a real PostgreSQL: one server per test binary, one migrated template, and a fresh copy of
// it for every test.
//
// The server is an embedded one, unless PERPKEEPER_TEST_POSTGRES names an existing server by the address of a user who
// may create databases. Tests do not wait for its disk, unless KEEPER_DURABLE is 1: benchmarks are to be run
// both ways, for what a commit costs is what an operator pays.
package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/lab/embedded/postgres"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/setting/secret"
)

// serverVariable names an existing server to use.
const serverVariable = "PERPKEEPER_TEST_POSTGRES"

// durableVariable set to 1: the embedded server waits for its disk at each commit, as an operator's does.
const durableVariable = "KEEPER_DURABLE"

// Main runs the tests of a package and stops the server afterwards: func TestMain(m *testing.M) { pgtest.Main(m) }.
// Without it the server ends with the process all the same, but its directory stays until the next server starts on
// this machine.
func Main(m *testing.M) {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the test server:", err)
	}
	os.Exit(code)
}

// DB opens a fresh, migrated database for one test. It is closed and dropped when the test ends.
func DB(tb testing.TB) *pg.DB {
	tb.Helper()
	db, err := pg.Open(tb.Context(), Config(tb), tb.Name())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}

// Config is the configuration of a fresh, migrated database, for tests that open it themselves or hand it to a process.
func Config(tb testing.TB) pg.Config {
	tb.Helper()
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(URL(tb))
	return cfg
}

// URL is the address of a fresh, migrated database. It is dropped when the test ends, whoever is still connected.
func URL(tb testing.TB) string {
	tb.Helper()
	return create(tb, true)
}

// EmptyURL is the address of a fresh database without any schema.
func EmptyURL(tb testing.TB) string {
	tb.Helper()
	return create(tb, false)
}

func create(tb testing.TB, migrated bool) string {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatalf("starting the test server: %v", err)
	}
	name, statement := "test_"+hex.EncodeToString(id()), "CREATE DATABASE %s"
	if migrated {
		statement += " TEMPLATE " + s.template
	}
	if err := s.exec(tb.Context(), fmt.Sprintf(statement, name)); err != nil {
		tb.Fatalf("creating a test database: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("dropping the test database: %v", err)
		}
	})
	return s.url(name)
}

// server is the one server of this process.
type server struct {
	embedded *postgres.Server // nil when the server is not ours
	address  string
	template string
}

var shared = sync.OnceValues(start)

func start() (*server, error) {
	s := &server{address: os.Getenv(serverVariable)}
	if s.address == "" {
		embedded, err := postgres.Start(postgres.Config{NoSync: os.Getenv(durableVariable) != "1"})
		if err != nil {
			return nil, err
		}
		s.embedded, s.address = embedded, embedded.URL("")
	}
	if err := s.makeTemplate(context.Background()); err != nil {
		return nil, err
	}
	running = s
	return s, nil
}

// running is set once the server can be stopped.
var running *server

func stop() error {
	if running == nil || running.embedded == nil {
		return nil
	}
	return running.embedded.Stop()
}

// makeTemplate migrates a database once per server and schema: test binaries that share a server share it.
func (s *server) makeTemplate(ctx context.Context) error {
	sum, err := schemaSum()
	if err != nil {
		return err
	}
	s.template = "perpkeeper_template_" + sum
	conn, err := pgx.Connect(ctx, s.address)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", s.template); err != nil {
		return fmt.Errorf("waiting for others who make the template: %w", err)
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", s.template).
		Scan(&exists); err != nil || exists {
		return err
	}
	// renamed when complete, so that a killed test run leaves no half template behind
	building := s.template + "_building"
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + building, "CREATE DATABASE " + building} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("making the template: %w", err)
		}
	}
	if err := migrate(ctx, s.url(building)); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+building+" RENAME TO "+s.template); err != nil {
		return fmt.Errorf("finishing the template: %w", err)
	}
	return nil
}

func migrate(ctx context.Context, address string) error {
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(address)
	db, err := pg.Open(ctx, cfg, "pgtest")
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Migrate(ctx)
}

// schemaSum is a short hash over everything that makes the schema.
func schemaSum() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(pg.SchemaFiles(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(pg.SchemaFiles(), path)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text) // a hash never fails
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}

func (s *server) url(database string) string {
	u, err := url.Parse(s.address)
	if err != nil {
		panic(errors.New("pgtest: " + serverVariable + " is no URL"))
	}
	u.Path = "/" + database
	return u.String()
}

func (s *server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func id() []byte {
	id := uuid.New()
	return id[:]
}
