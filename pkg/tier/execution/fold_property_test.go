package execution

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// entry is what one partition's stream says next: a share of a block, or a reorg.
type entry struct {
	ref   chain.BlockRef
	share Share
	undo  *chain.Reorg
}

// topic is what a scanner wrote: a stream for each partition, and what all of them have.
type topic struct {
	streams [][]entry
	// whole are the executions (by order) of blocks that all partitions have, final those of the branch they end on.
	whole, final map[string]chain.BlockRef
}

// write plays a scanner on a chain that reorganizes, that is killed now and then amid a block (so that partitions lack
// it before the reorg), and that repeats itself when it starts again.
func write(t *rapid.T) topic {
	partitions := rapid.IntRange(1, 4).Draw(t, "partitions")
	w := topic{streams: make([][]entry, partitions), whole: map[string]chain.BlockRef{},
		final: map[string]chain.BlockRef{}}
	branch := []chain.BlockRef{{Number: 10, Hash: chain.Hash{10}}}
	had := make([]map[chain.Hash]bool, partitions)
	for p := range had {
		had[p] = map[chain.Hash]bool{}
	}
	ended := map[chain.Hash][]string{} // orders by block
	undone := make([][]entry, partitions)
	serial := 0
	grow := func(killed int) {
		serial++
		tip := branch[len(branch)-1]
		next := chain.BlockRef{Number: tip.Number + 1, Parent: tip.Hash, Hash: chain.Keccak256(fmt.Append(nil, serial)),
			TimeMs: 1}
		shares := make([]Share, partitions)
		for i := range rapid.IntRange(0, 3).Draw(t, "orders") {
			order := fmt.Sprintf("%d/%d", serial, i)
			p := rapid.IntRange(0, partitions-1).Draw(t, "account's partition")
			shares[p].Logs = append(shares[p].Logs, orderLog(next, uint32(i), order))
			shares[0].Txs = append(shares[0].Txs, txOf(next, order))
			ended[next.Hash] = append(ended[next.Hash], order)
		}
		for p := range partitions - killed {
			w.streams[p] = append(w.streams[p], entry{ref: next, share: shares[p]})
			had[p][next.Hash] = true
			if rapid.IntRange(0, 9).Draw(t, "repeats") == 0 {
				w.streams[p] = append(w.streams[p], entry{ref: next, share: shares[p]})
			}
			if len(undone[p]) > 0 && rapid.IntRange(0, 3).Draw(t, "repeats a reorg") == 0 {
				w.streams[p] = append(w.streams[p], rapid.SampledFrom(undone[p]).Draw(t, "reorg"))
			}
		}
		branch = append(branch, next)
	}
	undo := func(depth int) {
		ancestor := branch[len(branch)-1-depth]
		for p := range partitions {
			last := len(branch) - 1
			for last > 0 && !had[p][branch[last].Hash] { // each partition takes back what it has
				last--
			}
			if last < len(branch)-depth {
				continue
			}
			e := entry{undo: &chain.Reorg{Ancestor: ancestor, OldTip: branch[last]}}
			w.streams[p], undone[p] = append(w.streams[p], e), append(undone[p], e)
		}
		branch = branch[:len(branch)-depth]
	}
	for range rapid.IntRange(1, 20).Draw(t, "steps") {
		switch rapid.IntRange(0, 4).Draw(t, "step") {
		case 0:
			if depth := rapid.IntRange(0, len(branch)-1).Draw(t, "depth"); depth > 0 {
				undo(depth)
			}
		case 1:
			grow(rapid.IntRange(0, partitions-1).Draw(t, "partitions that lack it"))
			undo(1)
		default:
			grow(0)
		}
	}
	for hash, orders := range ended {
		if slices.ContainsFunc(had, func(h map[chain.Hash]bool) bool { return !h[hash] }) {
			continue
		}
		for _, order := range orders {
			w.whole[order] = chain.BlockRef{Hash: hash}
			if slices.ContainsFunc(branch, func(b chain.BlockRef) bool { return b.Hash == hash }) {
				w.final[order] = chain.BlockRef{Hash: hash}
			}
		}
	}
	return w
}

// TestFoldTellsTheChain: however far partitions are apart, every execution of the branch they end on is told once, with
// its sender and in the branch's order, and nothing is told of a block that some partition never had.
func TestFoldTellsTheChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := write(t)
		f := NewFold(orderDecoder{}, len(w.streams))
		at := make([]int, len(w.streams))
		byKey := map[chain.Hash]string{}
		for order := range w.whole {
			byKey[chain.Keccak256([]byte(order))] = order
		}
		told := map[string]bool{}
		var last chain.LogPos
		for {
			var ready []int
			for p, s := range w.streams {
				if at[p] < len(s) {
					ready = append(ready, p)
				}
			}
			if len(ready) == 0 {
				break
			}
			p := rapid.SampledFrom(ready).Draw(t, "partition")
			e := w.streams[p][at[p]]
			at[p]++
			if e.undo != nil {
				f.Undo(p, *e.undo)
				continue
			}
			found, err := f.Block(p, e.ref, e.share)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range found {
				order, known := byKey[x.Key]
				if !known || told[order] || w.whole[order].Hash != x.Block.Hash ||
					x.Tx.Hash != chain.Keccak256([]byte(order)) || x.Tx.From != (chain.Address{7}) {
					t.Fatalf("told %q (before: %t) of block %s", order, told[order], x.Block.Hash)
				}
				told[order] = true
				if _, stays := w.final[order]; stays {
					if !last.Before(x.Pos) && last != (chain.LogPos{}) {
						t.Fatalf("told %v after %v", x.Pos, last)
					}
					last = x.Pos
				}
			}
		}
		for order := range w.final {
			if !told[order] {
				t.Fatalf("%q was never told", order)
			}
		}
	})
}
