package pg_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"
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
		{"too old", pgtest.URL, "DELETE FROM public.perpkeeper_schema WHERE version_id > 1",
			[]string{"version 1, this build needs", "keeperctl prepare"}},
		{"too new", pgtest.URL, "INSERT INTO public.perpkeeper_schema (version_id, is_applied) VALUES (99, true)",
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
	execute(t, url, "INSERT INTO public.perpkeeper_schema (version_id, is_applied) VALUES (99, true)")
	if err := open(t, url).Migrate(t.Context()); !errors.Is(err, pg.ErrSchema) {
		t.Errorf("got %v", err)
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
	if err := (pg.Config{}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 5 {
		t.Errorf("got %v", err)
	}
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL("https://db:secretword@example.org/x")
	if err := cfg.Validate(); err == nil || strings.Contains(err.Error(), "secretword") {
		t.Errorf("got %v", err)
	}
}
