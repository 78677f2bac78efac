package pg

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"perpkeeper/pkg/perp"
)

//go:embed migrations/*.sql state/*.sql
var schemaFiles embed.FS

// SchemaFiles is everything that makes the schema: the migrations, and the templates of a generation.
func SchemaFiles() fs.FS { return schemaFiles }

// tablesFile is the template that begins with the layout's number, so that a column and its number are one file.
const tablesFile = "state/tables.sql"

// stateLayout is the version of the templates in state. A generation is never altered: a build with another layout
// needs a new generation, filled from the log topic. A test pins the templates' bytes to this number.
var stateLayout = readLayout()

func readLayout() (number int) {
	text, err := schemaFiles.ReadFile(tablesFile)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "-- state layout %d\n", &number)
	}
	if err != nil {
		panic(fmt.Sprintf("%s does not begin with the number of the layout: %v", tablesFile, err))
	}
	return number
}

// versionTable is where goose keeps what has been applied.
const versionTable = "public.perpkeeper_schema"

// Migrate brings the database to this build's version and, the first time, creates generation 1 and makes it the active
// one. Several processes may call it at once: they wait for each other.
func (db *DB) Migrate(ctx context.Context) error {
	provider, closeProvider, err := db.migrations()
	if err != nil {
		return err
	}
	defer closeProvider()
	if current, target, err := provider.GetVersions(ctx); err != nil {
		return fmt.Errorf("reading the schema version: %w", err)
	} else if current > target {
		return db.checkOldest(ctx, current, target) // a newer build was here, and has done all there is to do
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return db.createFirstGeneration(ctx)
}

// CheckSchema returns an error, in one line with what to do, if this build cannot work with the database as it is: the
// schema is missing, too old or too new, or the active generation has another layout. It changes nothing.
func (db *DB) CheckSchema(ctx context.Context) error {
	if err := db.checkVersion(ctx); err != nil {
		return err
	}
	return db.checkLayout(ctx)
}

// checkVersion leaves the layout of generations aside.
func (db *DB) checkVersion(ctx context.Context) error {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	want, err := latestMigration()
	if err != nil {
		return err
	}
	var have int64
	err = db.pool.QueryRow(ctx, selectSchemaVersion.SQL()).Scan(&have)
	switch {
	case HasCode(err, codeUndefinedTable, codeInvalidSchema), err == nil && have == 0:
		return fmt.Errorf(
			"the database has no keeper schema, this build needs version %d: %w (run `keeperctl prepare`)", want,
			ErrSchema)
	case err != nil:
		return fmt.Errorf("reading the schema version: %w", err)
	case have < want:
		return fmt.Errorf("the database has schema version %d, this build needs %d: %w (run `keeperctl prepare`)", have,
			want, ErrSchema)
	case have > want:
		return db.checkOldest(ctx, have, want)
	}
	return nil
}

// checkOldest reports whether a schema that a newer build has migrated has all that this build uses. So a process that
// is started again while others are being replaced by newer ones goes on.
func (db *DB) checkOldest(ctx context.Context, have, want int64) error {
	var oldest int64
	if err := db.pool.QueryRow(ctx, selectOldestBuild.SQL()).Scan(&oldest); err != nil {
		return fmt.Errorf("reading which builds the schema serves: %w", err)
	}
	if oldest > want {
		return schemaTooNew(have, want)
	}
	return nil
}

// ErrSchema marks a database that this build cannot work with until somebody acts. A database that cannot be asked is
// another error.
var ErrSchema = errors.New("schema mismatch")

func schemaTooNew(have, want int64) error {
	return fmt.Errorf("the database has schema version %d, this build knows %d: %w (start a newer build; a schema "+
		"is never taken back)", have, want, ErrSchema)
}

var (
	selectSchemaVersion = Register("schema version",
		`SELECT coalesce(max(version_id), 0) FROM public.perpkeeper_schema WHERE is_applied`)
	selectOldestBuild = Register("oldest build", `SELECT version FROM keeper.oldest_build`)
	lockGenerations   = Register("lock generations",
		`LOCK TABLE keeper.generation_switch IN SHARE ROW EXCLUSIVE MODE`)
	selectAnyGeneration = Register("any generation", `SELECT EXISTS (SELECT FROM keeper.generation)`)
	insertGeneration    = Register("insert generation",
		`INSERT INTO keeper.generation (number, layout) VALUES ($1, $2)`)
)

// migrations returns the goose provider over the embedded files.
func (db *DB) migrations() (*goose.Provider, func(), error) {
	files, err := fs.Sub(schemaFiles, "migrations")
	if err != nil {
		return nil, nil, fmt.Errorf("opening the migrations: %w", err)
	}
	// Ask often, wait long: one process migrates while the others of the keeper start.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, nil, fmt.Errorf("preparing the migration lock: %w", err)
	}
	conn := stdlib.OpenDBFromPool(db.pool)
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, files,
		goose.WithTableName(versionTable), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reading the migrations: %w", err), conn.Close())
	}
	return provider, func() { closeQuietly(conn) }, nil
}

// closeQuietly gives the pool its connections back; the pool itself stays open.
func closeQuietly(conn *sql.DB) { _ = conn.Close() }

// latestMigration is the version of the newest embedded file.
func latestMigration() (int64, error) {
	files, err := fs.Glob(schemaFiles, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("this build has no migrations: %w", err)
	}
	return goose.NumericComponent(files[len(files)-1]) // the list is sorted
}

// CreateGeneration creates an empty generation for the current layout. It does not become the active one.
func (db *DB) CreateGeneration(ctx context.Context, number int) error {
	return db.withGenerations(ctx, func(tx pgx.Tx) error { return createGeneration(ctx, tx, number) })
}

// withGenerations runs f in a transaction that alone may change which generations there are and which is active.
func (db *DB) withGenerations(ctx context.Context, f func(tx pgx.Tx) error) error {
	return db.lockedGenerations(ctx, "", f)
}

// lockedGenerations is withGenerations at an isolation level. Whatever it is, f sees what the one before it did: LOCK
// is no look at the tables, and comes before the first.
func (db *DB) lockedGenerations(ctx context.Context, level pgx.TxIsoLevel, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockGenerations.SQL()); err != nil {
			return fmt.Errorf("locking the generations: %w", err)
		}
		return f(tx)
	})
}

func (db *DB) createFirstGeneration(ctx context.Context) error {
	return db.withGenerations(ctx, func(tx pgx.Tx) error {
		var exists bool
		if err := tx.QueryRow(ctx, selectAnyGeneration.SQL()).Scan(&exists); err != nil || exists {
			return err
		}
		if err := createGeneration(ctx, tx, 1); err != nil {
			return err
		}
		return activate(ctx, tx, 1, "the first")
	})
}

func createGeneration(ctx context.Context, tx pgx.Tx, number int) error {
	if _, err := tx.Exec(ctx, insertGeneration.SQL(), number, stateLayout); err != nil {
		return fmt.Errorf("creating generation %d: %w", number, err)
	}
	if _, err := tx.Exec(ctx, stateDDL(number)); err != nil {
		return fmt.Errorf("creating generation %d: %w", number, err)
	}
	return shareGeneration(ctx, tx, number)
}

var dropGeneration = Register("drop generation",
	`UPDATE keeper.generation SET followed = false, dropped_at = clock_timestamp() WHERE number = $1`)

// DropGeneration forgets the rows of a generation that is not active. Its number is not given again.
func (db *DB) DropGeneration(ctx context.Context, number int) error {
	// First statevm is made to let go of it: dropping tables under its hands would be a race of locks.
	if err := db.withGenerations(ctx, func(tx pgx.Tx) error { return mayDrop(ctx, tx, number) }); err != nil {
		return err
	}
	return db.withGenerations(ctx, func(tx pgx.Tx) error {
		if err := mayDrop(ctx, tx, number); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, dropGeneration.SQL(), number); err != nil {
			return fmt.Errorf("dropping generation %d: %w", number, err)
		}
		if _, err := tx.Exec(ctx, "DROP SCHEMA "+schemaName(number)+" CASCADE"); err != nil {
			return fmt.Errorf("dropping generation %d: %w", number, err)
		}
		return nil
	})
}

// mayDrop takes a generation out of use, unless it is in use.
func mayDrop(ctx context.Context, tx pgx.Tx, number int) error {
	active, _, err := activeLayout(ctx, tx)
	if err != nil {
		return err
	}
	if active == number {
		return Refusef("generation %d is the active one: switch to another one first", number)
	}
	return follow(ctx, tx, number, false)
}

// stateDDL is everything that makes the schema of a generation.
func stateDDL(generation int) string {
	return tablesDDL(schemaName(generation)) + indexesDDL(schemaName(generation))
}

// tablesDDL makes a schema with the tables of a generation and their keys.
func tablesDDL(schema string) string {
	var text strings.Builder
	text.WriteString(template("stream") + template("tables"))
	for _, t := range perp.Tables() {
		text.WriteString(strings.ReplaceAll(template("every_table"), "{table}", string(t)))
	}
	return strings.ReplaceAll(text.String(), "{state}", schema)
}

// indexesDDL makes the other indexes.
func indexesDDL(schema string) string {
	return strings.ReplaceAll(template("indexes"), "{state}", schema)
}

// template reads an embedded file; that it is there is the compiler's knowledge and a test's.
func template(name string) string {
	text, err := schemaFiles.ReadFile("state/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return string(text)
}
