package outbox_test

import (
	"database/sql"
	"io/fs"
	"slices"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of goose
	"github.com/pressly/goose/v3"

	"perpkeeper/pkg/pg"
)

// Where the archive is taken back, what it holds is where it came from, and it can be archived once more.
func TestArchiveIsTakenBack(t *testing.T) {
	d := newHolder(t, 4)
	d.ended(t)
	age(t, d.Address, 3*daily)
	want := stocked(t, d.Address)
	moved(t, d.DB, 10, 3)
	files, err := fs.Sub(pg.SchemaFiles(), "migrations")
	must(t, err)
	conn, err := sql.Open("pgx", d.Address)
	must(t, err)
	defer conn.Close()
	migrations, err := goose.NewProvider(goose.DialectPostgres, conn, files,
		goose.WithTableName("public.perpkeeper_schema"), goose.WithDisableGlobalRegistry(true))
	must(t, err)
	_, err = migrations.DownTo(t.Context(), 18)
	must(t, err)
	_, err = migrations.Up(t.Context())
	must(t, err)
	if got := stocked(t, d.Address); !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	moved(t, d.DB, 10, 3)
}
