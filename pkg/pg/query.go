package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The functions here hand the driver the text of a registered statement that their caller gives them; a test holds
// their callers to that. What they are doing is what an error says; nothing is said of a caller's own errors twice.

// Querier is what a pool and a transaction have in common.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Select returns the rows of a query as read makes them.
func Select[T any](ctx context.Context, q Querier, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}

// Columns reads a row into the places that of names, in the order of the columns, and returns what they are part of. It
// is the one way to do so: in `return t, row.Scan(&t)` the language does not say which of the two comes first.
func Columns[T any](of func(t *T) []any) pgx.RowToFunc[T] {
	return func(row pgx.CollectableRow) (t T, err error) {
		err = row.Scan(of(&t)...)
		return t, err
	}
}

// Each reads one row after the other into the same places, and calls f for it.
func Each(ctx context.Context, q Querier, into []any, f func() error, sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, f)
	return err
}

// List is Select within the time that the database has for an answer.
func List[T any](ctx context.Context, db *DB, doing string, read pgx.RowToFunc[T], sql string, args ...any) ([]T,
	error) {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	all, err := Select(ctx, db.pool, read, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return all, nil
}

// One returns the first row of a query, within the time that the database has for an answer. The error is
// pgx.ErrNoRows where there is none.
func One[T any](ctx context.Context, db *DB, doing string, read pgx.RowToFunc[T], sql string, args ...any) (one T,
	err error) {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	rows, err := db.pool.Query(ctx, sql, args...)
	if err == nil {
		one, err = pgx.CollectOneRow(rows, read)
	}
	if err != nil {
		return one, fmt.Errorf("%s: %w", doing, err)
	}
	return one, nil
}

// Run executes a statement within the time that the database has for an answer, and returns how many rows it touched.
func (db *DB) Run(ctx context.Context, doing, sql string, args ...any) (rows int64, err error) {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	tag, err := db.pool.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	return tag.RowsAffected(), nil
}

// Write runs f in one transaction, within the time that the database has for an answer.
func (db *DB) Write(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return f(ctx, tx) })
}

// Read runs f in one REPEATABLE READ, read-only transaction: everything it asks is answered from the same instant.
func (db *DB) Read(ctx context.Context, doing string, f func(context.Context, pgx.Tx) error) error {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	err := pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error { return f(ctx, tx) })
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// ReadActive is Read over the active generation.
func (db *DB) ReadActive(ctx context.Context, doing string,
	f func(ctx context.Context, tx pgx.Tx, generation int) error) error {
	return db.Read(ctx, doing, func(ctx context.Context, tx pgx.Tx) error {
		generation, err := activeGeneration(ctx, tx)
		if err != nil {
			return err
		}
		return f(ctx, tx, generation)
	})
}
