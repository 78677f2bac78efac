package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// waitWhole lets the statements of a transaction take as long as whole tables take.
var waitWhole = Register("wait for whole tables", `SELECT set_config('statement_timeout', '0', true)`)

// Comparison is two generations in one snapshot.
type Comparison struct {
	A, B Standing
	// SumsA and SumsB are there only when both stand at the same place.
	SumsA, SumsB Checksums
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

// Differing lists the tables whose checksums differ, when both stand at the same place.
func (c Comparison) Differing() (tables []perp.Table) {
	for _, table := range perp.Tables() {
		if c.SumsA[table] != c.SumsB[table] {
			tables = append(tables, table)
		}
	}
	return tables
}

// Equal tells whether the two have read equally far and hold the same rows.
func (c Comparison) Equal() bool { return c.SamePlace() && len(c.Differing()) == 0 }

// Compare compares two generations in one snapshot. It reads all rows of both, but only when they stand at the same
// place.
func (db *DB) Compare(ctx context.Context, a, b int) (c Comparison, err error) {
	err = pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			c, err = compare(ctx, tx, a, b)
			return err
		})
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing generations %d and %d: %w", a, b, err)
	}
	return c, nil
}

func compare(ctx context.Context, tx pgx.Tx, a, b int) (c Comparison, err error) {
	if _, err = tx.Exec(ctx, waitWhole.SQL()); err != nil {
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
	if c.SumsA, err = checksums(ctx, tx, a); err != nil {
		return c, err
	}
	c.SumsB, err = checksums(ctx, tx, b)
	return c, err
}
