package pg

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

var (
	// wholeTables lets the statements of a transaction take as long as whole tables take, and a join the memory that it
	// takes with them; beyond it the server uses its disk. A hash table that processes share would be in /dev/shm, of
	// which a container has little.
	wholeTables = Register("wait for whole tables",
		`SELECT set_config('statement_timeout', '0', true), set_config('work_mem', '64MB', true),
		set_config('enable_parallel_hash', 'off', true)`)
	// countSame counts the rows of two generations, and those that both have, to the last column. A row's key and
	// partition are unique in each.
	countSame = perTable("rows that two generations have of", `SELECT x.n, y.n, same.n FROM
		(SELECT count(*) AS n FROM {state}.{table} t WHERE t.deleted_at IS NULL AND {one copy}) x,
		(SELECT count(*) AS n FROM {other}.{table} t WHERE t.deleted_at IS NULL AND {one copy}) y,
		(SELECT count(*) AS n
			FROM (SELECT {columns}, part FROM {state}.{table} t WHERE t.deleted_at IS NULL AND {one copy}) a
			JOIN (SELECT {columns}, part FROM {other}.{table} t WHERE t.deleted_at IS NULL AND {one copy}) b
				ON a.key = b.key AND a.part = b.part
			WHERE ROW({a.columns}) IS NOT DISTINCT FROM ROW({b.columns})) same`)
)

// Comparison is two generations in one snapshot.
type Comparison struct {
	A, B Standing
	// SumsA and SumsB are there only when both stand at the same place, and were asked for.
	SumsA, SumsB Checksums

	differing []perp.Table
}

// SamePlace tells whether both have read equally far, in every partition.
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

// Equal tells whether the two have read equally far and hold the same rows.
func (c Comparison) Equal() bool { return c.SamePlace() && len(c.Differing()) == 0 }

// Compare compares two generations in one snapshot. It reads all rows of both, but only when they stand at the same
// place: the server holds each row of the one against that of the other. The checksums, which take several times as
// long, are for who wants to show them: rows that are the same have the same.
func (db *DB) Compare(ctx context.Context, a, b int, checksums bool) (c Comparison, err error) {
	err = pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			if c, err = compare(ctx, tx, a, b); err != nil || !checksums || !c.SamePlace() {
				return err
			}
			c, err = summed(ctx, tx, c)
			return err
		})
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing generations %d and %d: %w", a, b, err)
	}
	return c, nil
}

func compare(ctx context.Context, tx pgx.Tx, a, b int) (c Comparison, err error) {
	if _, err = tx.Exec(ctx, wholeTables.SQL()); err != nil {
		return c, fmt.Errorf("lifting the time limit: %w", err)
	}
	if c.A, err = standing(ctx, tx, a); err != nil {
		return c, err
	}
	if c.B, err = standing(ctx, tx, b); err != nil {
		return c, err
	}
	if !c.SamePlace() {
		return c, nil
	}
	for _, table := range perp.Tables() {
		var inA, inB, same int64
		if err := tx.QueryRow(ctx, countSame[table].In(a, b)).Scan(&inA, &inB, &same); err != nil {
			return c, fmt.Errorf("holding the rows of table %s against each other: %w", table, err)
		}
		if inA != same || inB != same {
			c.differing = append(c.differing, table)
		}
	}
	return c, nil
}

// summed is a comparison with the checksums of both: of tables that are the same, taken once.
func summed(ctx context.Context, tx pgx.Tx, c Comparison) (_ Comparison, err error) {
	if c.SumsA, err = checksums(ctx, tx, c.A.Generation, perp.Tables()); err != nil {
		return c, err
	}
	if c.SumsB, err = checksums(ctx, tx, c.B.Generation, c.differing); err != nil {
		return c, err
	}
	for table, sum := range c.SumsA {
		if !slices.Contains(c.differing, table) {
			c.SumsB[table] = sum
		}
	}
	return c, nil
}
