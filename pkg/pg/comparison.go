package pg

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

var (
	// wholeTables lets the statements of a transaction take as long as whole tables take, and gives a join the memory
	// that it takes with such tables; beyond it the server uses its disk. A hash table that processes share would be in
	// /dev/shm: a container has little of it.
	wholeTables = Register("wait for whole tables", limitsOff.SQL()+`, set_config('work_mem', '32MB', true),
		set_config('enable_parallel_hash', 'off', true)`)
	// countDiffering counts the rows that one of two generations has and the other has not, to the last column. A row's
	// key and partition are unique in each. Every copy counts: a partition folds with its own.
	countDiffering = perTable("rows that differ of", `SELECT count(*)
		FROM (SELECT {columns}, part FROM {state}.{table} WHERE deleted_at IS NULL) a
		FULL JOIN (SELECT {columns}, part FROM {other}.{table} WHERE deleted_at IS NULL) b
			ON a.key = b.key AND a.part = b.part
		WHERE ROW({a.columns}) IS DISTINCT FROM ROW({b.columns})`)
)

// Comparison is two generations in one snapshot.
type Comparison struct {
	A, B Progress

	differing []perp.Table
}

// SamePlace reports whether both have read equally far, in every partition.
func (c Comparison) SamePlace() bool {
	if c.A.Partitions == 0 || c.A.Partitions != c.B.Partitions || len(c.A.Offsets) != len(c.B.Offsets) ||
		len(c.A.Offsets) < c.A.Partitions {
		return false
	}
	for i, a := range c.A.Offsets {
		b := c.B.Offsets[i]
		a.Rev, b.Rev = 0, 0 // counts transactions, of which a large step is one
		if a != b {
			return false
		}
	}
	return true
}

// Differing lists the tables that do not hold the same rows, when both stand at the same place.
func (c Comparison) Differing() []perp.Table { return c.differing }

// Equal reports whether the two have read equally far and hold the same rows.
func (c Comparison) Equal() bool { return c.SamePlace() && len(c.Differing()) == 0 }

// Compare compares two generations in one snapshot. It reads all rows of both, but only when they stand at the same
// place: the server holds each row of the one against that of the other.
func (db *DB) Compare(ctx context.Context, a, b int) (c Comparison, err error) {
	err = pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			c, err = db.compare(ctx, tx, a, b)
			return err
		})
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing generations %d and %d: %w", a, b, err)
	}
	return c, nil
}

func (db *DB) compare(ctx context.Context, tx pgx.Tx, a, b int) (c Comparison, err error) {
	if c.A, err = progress(ctx, tx, a); err != nil {
		return c, err
	}
	if c.B, err = progress(ctx, tx, b); err != nil {
		return c, err
	}
	if c.SamePlace() {
		c.differing, err = differing(ctx, tx, a, b)
	}
	return c, err
}

// differing names the tables that do not hold the same rows as of what tx sees. It works in a savepoint that is taken
// back, and with it what lifts the limits: what follows in tx has them again.
func differing(ctx context.Context, tx pgx.Tx, a, b int) (differing []perp.Table, err error) {
	work, err := tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("setting a savepoint: %w", err)
	}
	if err := lift(ctx, work, wholeTables); err != nil {
		return nil, err
	}
	for _, table := range perp.Tables() {
		var n int64
		if err := work.QueryRow(ctx, countDiffering[table].In(a, b)).Scan(&n); err != nil {
			return nil, fmt.Errorf("holding the rows of table %s against each other: %w", table, err)
		}
		if n > 0 {
			differing = append(differing, table)
		}
	}
	slices.Sort(differing)
	return differing, work.Rollback(ctx)
}

var everyRow = perTable("every row of",
	`SELECT {selected} FROM {state}.{table} t WHERE t.deleted_at IS NULL AND {one copy} ORDER BY t.key, t.part`)

// EveryRow reads all rows of a generation in one snapshot, by table and key, of a replicated table the copy of partition
// 0, and returns where the generation stood.
func (db *DB) EveryRow(ctx context.Context, generation int, take func(perp.Row) error) (at Progress, err error) {
	err = db.Read(ctx, "reading a generation", func(ctx context.Context, tx pgx.Tx) error {
		if at, err = progress(ctx, tx, generation); err != nil {
			return err
		}
		for _, table := range perp.Tables() {
			rows, err := tx.Query(ctx, everyRow[table].In(generation))
			if err == nil {
				err = eachRow(rows, layouts[table], take)
				rows.Close()
			}
			if err != nil {
				return fmt.Errorf("table %s: %w", table, err)
			}
		}
		return nil
	})
	return at, err
}
