package pg_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/setting/secret"
)

// open opens a database that may have no schema.
func open(t *testing.T, url string) *pg.DB {
	t.Helper()
	return openConfig(t, configFor(url))
}

func openConfig(t *testing.T, cfg pg.Config) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func configFor(url string) pg.Config {
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(url)
	return cfg
}

// query asks one question past the package.
func query[T any](t *testing.T, url, sql string, args ...any) (answer T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

// execute runs SQL past the package, as an operator with psql would.
func execute(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestMigrateIsRepeatableAndConcurrent(t *testing.T) {
	db := open(t, pgtest.EmptyURL(t))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := db.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := db.CheckSchema(t.Context()); err != nil {
		t.Errorf("after migrating: %v", err)
	}
	generations, err := db.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(generations) != 1 || generations[0].Number != 1 || !generations[0].Active {
		t.Errorf("generations: %+v", generations)
	}
}

func TestSchemaMismatchIsOneClearLine(t *testing.T) {
	for _, test := range []struct {
		name   string
		url    func(testing.TB) string
		change string
		want   []string
	}{
		{"missing", pgtest.EmptyURL, "", []string{"no keeper schema", "keeperctl prepare"}},
		{"begun and never finished", pgtest.URL, "DELETE FROM public.perpkeeper_schema WHERE version_id > 0",
			[]string{"no keeper schema", "keeperctl prepare"}},
		{"too new", pgtest.URL, newerSchema + ";UPDATE keeper.oldest_build SET version = 99",
			[]string{"version 99", "newer build"}},
		{"other layout", pgtest.URL, "UPDATE keeper.generation SET layout = 77",
			[]string{"state layout 77", "new generation"}},
		{"no generation", pgtest.URL, "DELETE FROM keeper.active_generation",
			[]string{"no active generation", "keeperctl prepare"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := test.url(t)
			if test.change != "" {
				execute(t, url, test.change)
			}
			err := open(t, url).CheckSchema(t.Context())
			if !errors.Is(err, pg.ErrSchema) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v", err)
			}
			for _, w := range test.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	url := pgtest.URL(t)
	execute(t, url, newerSchema)
	execute(t, url, "UPDATE keeper.oldest_build SET version = 99")
	if err := open(t, url).Migrate(t.Context()); !errors.Is(err, pg.ErrSchema) {
		t.Errorf("got %v", err)
	}
}

// newerSchema is what a newer build leaves that only adds to the schema.
const newerSchema = "INSERT INTO public.perpkeeper_schema (version_id, is_applied) VALUES (99, true)"

// PIPE-8: while a region is upgraded, a process of the build before that is started again works with the schema of the
// next one, which adds to it and takes nothing away.
func TestNewerSchemaServesTheBuildBefore(t *testing.T) {
	url := pgtest.URL(t)
	execute(t, url, newerSchema)
	db := open(t, url)
	if err := db.CheckSchema(t.Context()); err != nil {
		t.Errorf("a build that the schema serves is refused: %v", err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Errorf("its keeperctl prepare is refused: %v", err)
	}
}

// PIPE-8: a build of another layout waits until readers are switched to a generation that it can read, and from then on
// the build before reads nothing and ends. None of them ever reads a generation of the other.
func TestBuildsOfTwoLayouts(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	const other = "UPDATE keeper.generation SET layout = layout + 1"
	execute(t, url, other)
	told, ready := make(chan error, 1), make(chan error, 1)
	go func() {
		ready <- db.AwaitSchema(t.Context(), retry.Policy{OnRetry: func(_ int, err error, _ time.Duration) {
			select {
			case told <- err:
			default:
			}
		}})
	}()
	select {
	case err := <-told:
		if !errors.Is(err, pg.ErrLayout) {
			t.Errorf("it waits because of %v", err)
		}
	case err := <-ready:
		t.Fatalf("it waits for no other layout: %v", err)
	}
	if _, err := db.Progress(t.Context()); !errors.Is(err, pg.ErrLayout) {
		t.Errorf("reading a generation of another layout: %v", err)
	}
	next, err := db.AddGeneration(t.Context(), nil)
	must(t, err)
	must(t, db.Switch(t.Context(), next, "another layout"))
	must(t, <-ready)
	if _, err := db.Progress(t.Context()); err != nil {
		t.Errorf("after the switch: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.WatchLayout(t.Context()) }()
	execute(t, url, other+fmt.Sprintf(" WHERE number = %d; NOTIFY generation_changed", next))
	if err := <-ended; !errors.Is(err, pg.ErrLayout) {
		t.Errorf("a generation of another layout serves, and the watch says %v", err)
	}
	if err := db.DropGeneration(t.Context(), 1); err != nil {
		t.Errorf("the generation of before is not dropped: %v", err)
	}
}

// A database that cannot be asked is not a database with the wrong schema.
func TestUnreachableIsNotAMismatch(t *testing.T) {
	db := open(t, "postgres://nobody:secretword@127.0.0.1:1/none")
	err := db.CheckSchema(t.Context())
	if err == nil || errors.Is(err, pg.ErrSchema) {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "secretword") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestConfigNamesEveryProblem(t *testing.T) {
	if err := (pg.Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "url: not set") {
		t.Errorf("got %v", err)
	}
	cfg := pg.DefaultConfig()
	for address, refused := range map[string]bool{
		"postgres://keeper@db.example.org/keeper":                 true,
		"postgres://keeper@db.example.org/keeper?sslmode=prefer":  true,
		"postgres://keeper@db.example.org/keeper?sslmode=require": false,
		"postgres://keeper@postgres:5432/keeper?sslmode=disable":  false,

		"postgres://keeper@postgres:5432/keeper?sslmode=disable&pool_max_conns=1": true,
		"postgres://keeper@postgres:5432/keeper?sslmode=disable&pool_max_conns=2": false,
		"postgres://keeper@127.0.0.1/keeper":                                      false,
	} {
		cfg.URL = secret.MustURL(address)
		err := cfg.Validate()
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "(say sslmode=") &&
			!strings.Contains(err.Error(), "pool_max_conns=1 is too few") {
			t.Errorf("%s: %v", address, err)
		}
	}
	cfg.URL = secret.MustURL("https://db:secretword@example.org/x")
	if err := cfg.Validate(); err == nil || strings.Contains(err.Error(), "secretword") {
		t.Errorf("got %v", err)
	}
}
