package pg_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// history is a chain of blocks with arbitrary changes, kept in a book beside the database.
type history struct {
	book    *perp.Book
	blocks  []chain.BlockRef // canonical, ascending
	forks   uint64           // makes the hashes of branches differ
	next    int64
	touched []perp.RowKey // by any block, on whatever branch

	generation int
}

func newHistory() *history { return &history{book: perp.NewBook(), generation: 1} }

// ground is the block that every history stands on.
var ground = chain.BlockRef{Number: 999, Hash: chain.Hash{9}}

func number(n uint64) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[24:], n)
	return h
}

func (h *history) tip() chain.BlockRef {
	if len(h.blocks) == 0 {
		return ground
	}
	return h.blocks[len(h.blocks)-1]
}

// extend makes a block on the tip that puts the given rows, and applies it to the book.
func (h *history) extend(t fataler, rows ...perp.Row) pg.AppliedBlock {
	tip := h.tip()
	ref := chain.BlockRef{Number: tip.Number + 1, Parent: tip.Hash, TimeMs: (tip.Number + 1) * 450}
	ref.Hash = chain.Keccak256(ref.Parent[:], binary.BigEndian.AppendUint64(nil, h.forks))
	if err := h.book.Begin(ref.Number); err != nil {
		t.Fatal(err)
	}
	block := pg.AppliedBlock{BlockRef: ref}
	before, after := map[perp.RowKey]perp.Row{}, map[perp.RowKey]perp.Row{}
	for _, r := range rows {
		if _, touched := before[r.RowKey()]; !touched {
			before[r.RowKey()] = h.book.Get(r.RowKey())
		}
		h.book.Put(r)
		after[r.RowKey()] = r
	}
	h.touched = append(h.touched, slices.Collect(maps.Keys(after))...)
	for k := range maps.Keys(after) {
		block.Changes = append(block.Changes, pg.Change{Before: before[k], After: after[k]})
	}
	h.blocks = append(h.blocks, block.BlockRef)
	return block
}

// rewind takes the last blocks back.
func (h *history) rewind(t fataler, depth int) pg.Rewind {
	h.blocks = h.blocks[:len(h.blocks)-depth]
	h.forks++
	if err := h.book.Undo(h.tip().Number); err != nil {
		t.Fatal(err)
	}
	h.next++
	return pg.Rewind{Next: h.next, Ancestor: h.tip()}
}

// step is a commit of blocks with made-up offsets.
func (h *history) step(blocks ...pg.AppliedBlock) pg.Commit {
	h.next += int64(len(blocks))
	return pg.Commit{Next: h.next, Blocks: blocks}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// agree compares the database with the book, table by table.
func (h *history) agree(t fataler, db *pg.DB) {
	t.Helper()
	want, err := pgtest.ChecksumsOf(h.book)
	if err != nil {
		t.Fatal(err)
	}
	got, at, err := pgtest.ChecksumsIn(background, db, h.generation)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		for _, table := range perp.Tables() {
			if got[table] != want[table] {
				t.Fatalf("after block %d table %s differs", at.Offsets[0].Tip.Number, table)
			}
		}
	}
	if tip := at.Offsets[0].Tip; tip != h.tip() {
		t.Fatalf("the partition stands at %+v, want %+v", tip, h.tip())
	}
}

// arbitraryRow makes a row of any table whose key is one of few, so that rows are touched again and again.
func arbitraryRow(t *rapid.T) perp.Row {
	l := pg.LayoutOf(rapid.SampledFrom(perp.Tables()).Draw(t, "table"))
	key := number(rapid.Uint64Range(1, 4).Draw(t, "key"))
	switch row := arbitrary(t, l).(type) {
	case perp.Position:
		row.PositionKey = key
		return row
	case perp.Order:
		row.Key = key
		return row
	case perp.Request:
		row.Key = key
		return row
	case perp.Market:
		row.MarketToken = key.Address()
		return row
	case perp.MarketValue:
		return perp.MarketValue{Measure: perp.PoolAmount, Scope: key, Value: row.Value, Stamp: row.Stamp}
	case perp.Parameter:
		row.Key = key
		return row
	case perp.BadDebt:
		row.OrderKey = key
		return row
	case perp.Transaction:
		row.Tx.Hash = key
		return row
	case perp.OracleSource:
		row.Oracle, row.Token = chain.Address{}, key.Address()
		return row
	case perp.Settlement:
		row.OrderKey = key
		return row
	case perp.KeeperFee:
		row.Stamp.TxHash, row.Stamp.Log = key, 0
		return row
	default:
		t.Fatalf("no key for a %T", row)
		return nil
	}
}

func arbitraryRows(t *rapid.T) []perp.Row {
	return rapid.SliceOfN(rapid.Custom(arbitraryRow), 0, 6).Draw(t, "rows")
}

// claim takes a partition of generation 1 of a topic with as many partitions as given.
func claim(t *testing.T, db *pg.DB, partition, of int) *pg.Partition {
	t.Helper()
	p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partition: partition, Partitions: of,
		Label: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// order is a row like any other, for tests that need only one.
func order(key uint64, status perp.Status) perp.Order {
	return perp.Order{Key: number(key), Account: chain.Address{byte(key)}, Status: status,
		SizeDeltaUsd: chain.Pow10(30),
		Reason:       "a\x00b\\\xff"}
}

func keysOf(rows []perp.Row) []perp.RowKey {
	keys := make([]perp.RowKey, len(rows))
	for i, r := range rows {
		keys[i] = r.RowKey()
	}
	return slices.Compact(keys)
}
