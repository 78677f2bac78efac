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

var everyRow = perTable("every row of",
	`SELECT {selected} FROM {state}.{table} t WHERE t.deleted_at IS NULL AND {one copy} ORDER BY t.key, t.part`)

// Checksums are SHA-256 over the canonical form of all rows of each table, in the order of their keys. They depend on
// the rows alone: not on partitions (of a replicated table the copy of partition 0 counts), revisions, tombstones or
// the order of writing.
type Checksums map[perp.Table]string

// Checksums computes those of a generation, and says where it stood.
func (db *DB) Checksums(ctx context.Context, generation int) (sums Checksums, at Standing, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
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
