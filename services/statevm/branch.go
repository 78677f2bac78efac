package statevm

import (
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
)

// branch is the chain as one partition has applied it, and the rule for what may come next. It is pure.
type branch struct {
	kept      []pg.Block // ascending, the last one is the tip; as long as the undo horizon
	finalized chain.BlockRef
}

// verdict is what to do with a record.
type verdict int

const (
	apply verdict = iota + 1
	skip
)

func (b *branch) tip() (pg.Block, bool) {
	if len(b.kept) == 0 {
		return pg.Block{}, false
	}
	return b.kept[len(b.kept)-1], true
}

// at returns the kept block of a number.
func (b *branch) at(number uint64) (pg.Block, bool) {
	i, found := slices.BinarySearchFunc(b.kept, number, func(k pg.Block, n uint64) int {
		switch {
		case k.Number < n:
			return -1
		case k.Number > n:
			return 1
		}
		return 0
	})
	if !found {
		return pg.Block{}, false
	}
	return b.kept[i], true
}

// has reports whether a block is on the branch.
func (b *branch) has(ref chain.BlockRef) bool {
	known, found := b.at(ref.Number)
	return found && known.Hash == ref.Hash
}

// block judges a block: the child of the tip is applied, a known one skipped. The very first block is taken as the start.
func (b *branch) block(next pg.Block) (verdict, error) {
	tip, exists := b.tip()
	known, isKept := b.at(next.Number)
	switch {
	case b.finalized.Number == next.Number && !b.finalized.Hash.IsZero() && b.finalized.Hash != next.Hash:
		return 0, haltf("block %d %s contradicts finality: %s is finalized", next.Number, next.Hash, b.finalized.Hash)
	case !exists, next.Follows(tip.BlockRef):
		return apply, nil
	case isKept && known.Hash == next.Hash && next.Attempt <= known.Attempt:
		return skip, nil
	case isKept && known.Hash == next.Hash:
		return 0, haltf("block %d %s comes again as attempt %d, without a reorg to its parent before", next.Number, next.Hash, next.Attempt)
	case isKept:
		return 0, haltf("block %d %s is of another branch than the one applied (%s), without a reorg before", next.Number, next.Hash, known.Hash)
	default:
		return 0, haltf("block %d %s, child of %s, does not follow block %d %s", next.Number, next.Hash, next.Parent, tip.Number, tip.Hash)
	}
}

// extend adds an applied block; under the very first one lies its parent, which a reorg may go back to.
func (b *branch) extend(next pg.Block) {
	if ground, exists := pg.Ground(next); exists && len(b.kept) == 0 {
		b.kept = append(b.kept, ground)
	}
	b.kept = append(b.kept, next)
	if surplus := len(b.kept) - pg.UndoHorizon - 1; surplus > 0 {
		b.kept = slices.Delete(b.kept, 0, surplus)
	}
}

// reorg judges a reorg: one whose old tip is on the branch is applied. Otherwise its blocks have been taken back already, as can be seen by its
// ancestor being on the branch.
func (b *branch) reorg(r chain.Reorg) (verdict, error) {
	switch {
	case b.has(r.OldTip) && r.OldTip.Number > r.Ancestor.Number && b.has(r.Ancestor):
		return apply, nil
	case !b.has(r.OldTip) && b.has(r.Ancestor):
		return skip, nil
	}
	tip, _ := b.tip()
	if b.has(r.OldTip) && r.Ancestor.Number < b.kept[0].Number {
		return 0, haltf("a reorg from block %d back to block %d goes deeper than can be undone, which is block %d (fill a new generation from the log topic)",
			r.OldTip.Number, r.Ancestor.Number, b.kept[0].Number)
	}
	return 0, haltf("a reorg from block %d %s back to block %d %s does not fit block %d %s, the last one applied",
		r.OldTip.Number, r.OldTip.Hash, r.Ancestor.Number, r.Ancestor.Hash, tip.Number, tip.Hash)
}

// rewind takes back everything above the ancestor.
func (b *branch) rewind(ancestor chain.BlockRef) {
	for len(b.kept) > 0 && b.kept[len(b.kept)-1].Number > ancestor.Number {
		b.kept = b.kept[:len(b.kept)-1]
	}
}

// finalize judges a finalized block. It never goes back, and never contradicts what was applied.
func (b *branch) finalize(ref chain.BlockRef) (verdict, error) {
	known, isKept := b.at(ref.Number)
	switch {
	case isKept && known.Hash != ref.Hash:
		return 0, haltf("block %d is finalized as %s and was applied as %s", ref.Number, ref.Hash, known.Hash)
	case ref.Number == b.finalized.Number && ref.Hash != b.finalized.Hash && !b.finalized.Hash.IsZero():
		return 0, haltf("block %d is finalized as %s and before as %s", ref.Number, ref.Hash, b.finalized.Hash)
	case ref.Number <= b.finalized.Number && !b.finalized.Hash.IsZero():
		return skip, nil
	}
	return apply, nil
}
