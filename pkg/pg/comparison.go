package pg

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
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

// Checksums are SHA-256 over the canonical form of all rows of each table, in the order of their keys. They depend on
// the rows alone: not on partitions (of a replicated table the copy of partition 0 counts), revisions, tombstones or
// the order of writing.
type Checksums map[perp.Table]string

// Checksums computes those of a generation, and returns where it stood.
func (db *DB) Checksums(ctx context.Context, generation int) (sums Checksums, at Progress, err error) {
	err = db.Read(ctx, "summing up a generation", func(ctx context.Context, tx pgx.Tx) error {
		if at, err = progress(ctx, tx, generation); err != nil {
			return err
		}
		sums, err = checksums(ctx, tx, generation, perp.Tables())
		return err
	})
	return sums, at, err
}

func checksums(ctx context.Context, tx pgx.Tx, generation int, tables []perp.Table) (sums Checksums, err error) {
	sums = Checksums{}
	for _, table := range tables {
		if sums[table], err = tableChecksum(ctx, tx, table, generation); err != nil {
			return nil, fmt.Errorf("summing up table %s: %w", table, err)
		}
	}
	return sums, nil
}

func tableChecksum(ctx context.Context, tx pgx.Tx, table perp.Table, generation int) (string, error) {
	rows, err := tx.Query(ctx, everyRow[table].In(generation))
	if err != nil {
		return "", err
	}
	defer rows.Close()
	sum := newSummer(table)
	for rows.Next() {
		if err := sum.addStored(rows.RawValues()); err != nil {
			return "", err
		}
	}
	return sum.result(), rows.Err()
}

// RowSource is any holder of rows, such as a perp.Book.
type RowSource interface {
	Rows(perp.Table) []perp.Row
}

// ChecksumsOf computes the same checksums over rows in memory.
func ChecksumsOf(source RowSource) (Checksums, error) {
	sums := Checksums{}
	for _, table := range perp.Tables() {
		rows := slices.Clone(source.Rows(table))
		slices.SortFunc(rows, func(a, b perp.Row) int {
			x, y := a.RowKey().Key, b.RowKey().Key
			return bytes.Compare(x[:], y[:])
		})
		sum := newSummer(table)
		for _, r := range rows {
			if err := sum.add(r); err != nil {
				return nil, err
			}
		}
		sums[table] = sum.result()
	}
	return sums, nil
}

// summer adds up the rows of one table.
type summer struct {
	layout layout
	sum    hash.Hash
	buffer []byte
}

func newSummer(table perp.Table) *summer { return &summer{layout: layouts[table], sum: sha256.New()} }

func (s *summer) add(row perp.Row) (err error) {
	if s.buffer, err = s.layout.encode(s.buffer[:0], row); err != nil {
		return err
	}
	s.sum.Write(s.buffer)
	return nil
}

// addStored adds a row as the server sends it.
func (s *summer) addStored(values [][]byte) (err error) {
	if s.buffer, err = s.layout.recode(s.buffer[:0], values); err != nil {
		return err
	}
	s.sum.Write(s.buffer)
	return nil
}

func (s *summer) result() string { return hex.EncodeToString(s.sum.Sum(nil)) }
