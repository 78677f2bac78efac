package txm

import (
	"testing"

	"pgregory.net/rapid"
)

func batchOf(cursor uint64, numbers ...uint64) Batch {
	b := Batch{Cursor: cursor}
	for _, n := range numbers {
		b.Claims = append(b.Claims, Claim{Tx: SignedTx{Nonce: n}})
	}
	return b
}

// NON-3: which numbers a batch may have.
func TestFresh(t *testing.T) {
	for name, c := range map[string]struct {
		batch Batch
		fresh int // -1 = it may not
	}{
		"none":                   {batchOf(7), -1},
		"the next":               {batchOf(7, 7), 1},
		"the next, out of order": {batchOf(7, 8, 9, 7), 3},
		"a gap":                  {batchOf(7, 3), 0},
		"gaps and the next":      {batchOf(7, 3, 7, 5, 8), 2},
		"the first of all":       {batchOf(0, 0, 1), 2},
		"a hole":                 {batchOf(7, 7, 9), -1},
		"not from the cursor":    {batchOf(7, 8), -1},
		"the next twice":         {batchOf(7, 7, 7), -1},
		"a gap twice":            {batchOf(7, 3, 7, 3), -1},
	} {
		fresh, err := c.batch.Fresh()
		if (err != nil) != (c.fresh < 0) || err == nil && fresh != c.fresh {
			t.Errorf("%s: %d, %v", name, fresh, err)
		}
	}
}

// The dumb twin takes the numbers one after the other, wherever they stand in the batch.
func TestFreshIsWhatCanBeTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cursor := rapid.Uint64Range(0, 4).Draw(t, "cursor")
		numbers := rapid.SliceOfN(rapid.Uint64Range(0, 8), 1, 6).Draw(t, "numbers")
		taken, next := map[uint64]bool{}, cursor
		for _, n := range numbers {
			taken[n] = true
		}
		for taken[next] {
			next++
		}
		gaps := 0
		for n := range cursor {
			if taken[n] {
				gaps++
			}
		}
		fresh, err := batchOf(cursor, numbers...).Fresh()
		if may := gaps+int(next-cursor) == len(numbers); may != (err == nil) {
			t.Fatalf("%v at cursor %d: %d, %v", numbers, cursor, fresh, err)
		}
		if err == nil && fresh != int(next-cursor) {
			t.Fatalf("%v at cursor %d: %d fresh, want %d", numbers, cursor, fresh, next-cursor)
		}
	})
}
