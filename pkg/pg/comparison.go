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

var everyRow = perTable("every row of",
	`SELECT {selected} FROM {state}.{table} t WHERE t.deleted_at IS NULL AND {one copy} ORDER BY t.key, t.part`)

// Checksums are SHA-256 over the canonical form of all rows of each table, in the order of their keys. They depend on
// the rows alone: not on partitions (of a replicated table the copy of partition 0 counts), revisions, tombstones or
// the order of writing.
type Checksums map[perp.Table]string

// Checksums computes those of a generation, and says where it stood.
func (db *DB) Checksums(ctx context.Context, generation int) (sums Checksums, at Standing, err error) {
	err = db.Read(ctx, "summing up a generation", func(ctx context.Context, tx pgx.Tx) error {
		if at, err = standing(ctx, tx, generation); err != nil {
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
