package perp

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Book is a [State] in memory that can take blocks back. It is for one goroutine at a time.
//
// Rows put before the first Begin are the ground it stands on and are never undone.
type Book struct {
	rows    map[RowKey]Row
	journal []firstTouch // of the begun blocks, ascending
	floor   uint64       // blocks up to here can no longer be undone
}

// firstTouch remembers the rows a block touched as they were before it; nil where there was none.
type firstTouch struct {
	block uint64
	old   map[RowKey]Row
}

// NewBook returns an empty book.
func NewBook() *Book { return &Book{rows: map[RowKey]Row{}} }

// Get implements [State].
func (b *Book) Get(k RowKey) Row { return b.rows[k] }

// Put implements [State].
func (b *Book) Put(r Row) {
	k := r.RowKey()
	if n := len(b.journal); n > 0 {
		if _, touched := b.journal[n-1].old[k]; !touched {
			b.journal[n-1].old[k] = b.rows[k]
		}
	}
	b.rows[k] = r
}

// Begin opens a block: what is put from now on belongs to it. Blocks may be skipped but never go back.
func (b *Book) Begin(block uint64) error {
	if last := b.last(); block <= last {
		return fmt.Errorf("block %d cannot follow block %d: undo first", block, last)
	}
	b.journal = append(b.journal, firstTouch{block: block, old: map[RowKey]Row{}})
	return nil
}

// Undo takes back every block above to: the rows are then as they were when to was the last block.
func (b *Book) Undo(to uint64) error {
	if to < b.floor {
		return fmt.Errorf("undoing to block %d: blocks up to %d are final", to, b.floor)
	}
	for n := len(b.journal); n > 0 && b.journal[n-1].block > to; n-- {
		for k, old := range b.journal[n-1].old {
			if old == nil {
				delete(b.rows, k)
			} else {
				b.rows[k] = old
			}
		}
		b.journal = b.journal[:n-1]
	}
	return nil
}

// Finalize gives up the ability to undo the blocks up to and including block, and the memory it takes.
func (b *Book) Finalize(block uint64) {
	b.floor = max(b.floor, block)
	kept, _ := slices.BinarySearchFunc(b.journal, b.floor+1,
		func(t firstTouch, block uint64) int { return cmp.Compare(t.block, block) })
	b.journal = slices.Delete(b.journal, 0, kept)
}

// Rows returns the rows of a table, ordered by key.
func (b *Book) Rows(t Table) []Row {
	var keys []RowKey
	for k := range maps.Keys(b.rows) {
		if k.Table == t {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y RowKey) int { return bytes.Compare(x.Key[:], y.Key[:]) })
	rows := make([]Row, len(keys))
	for i, k := range keys {
		rows[i] = b.rows[k]
	}
	return rows
}

func (b *Book) last() uint64 {
	if n := len(b.journal); n > 0 {
		return b.journal[n-1].block
	}
	return b.floor
}
