package pgtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"

	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// Checksums are SHA-256 over the canonical form of all rows of each table, in the order of their keys. They depend on
// the rows alone: not on partitions (of a replicated table the copy of partition 0 counts), revisions, tombstones or
// the order of writing.
type Checksums map[perp.Table]string

// RowSource is any holder of rows, such as a perp.Book.
type RowSource interface {
	Rows(perp.Table) []perp.Row
}

// ChecksumsIn are those of a generation, and where it stood.
func ChecksumsIn(ctx context.Context, db *pg.DB, generation int) (Checksums, pg.Progress, error) {
	sums := newSums()
	at, err := db.EveryRow(ctx, generation, sums.add)
	return sums.results(), at, err
}

// ChecksumsOf computes the same checksums over rows in memory.
func ChecksumsOf(source RowSource) (Checksums, error) {
	sums := newSums()
	for table := range sums {
		rows := slices.Clone(source.Rows(table))
		slices.SortFunc(rows, func(a, b perp.Row) int {
			x, y := a.RowKey().Key, b.RowKey().Key
			return bytes.Compare(x[:], y[:])
		})
		for _, r := range rows {
			if err := sums.add(r); err != nil {
				return nil, err
			}
		}
	}
	return sums.results(), nil
}

type sums map[perp.Table]hash.Hash

func newSums() sums {
	all := sums{}
	for _, table := range perp.Tables() {
		all[table] = sha256.New()
	}
	return all
}

func (s sums) add(row perp.Row) error {
	encoded, err := pg.EncodeRow(row)
	if err == nil {
		_, err = s[row.RowKey().Table].Write(encoded)
	}
	return err
}

func (s sums) results() Checksums {
	all := Checksums{}
	for table, sum := range s {
		all[table] = hex.EncodeToString(sum.Sum(nil))
	}
	return all
}
