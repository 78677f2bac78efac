package statevm

import (
	"cmp"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
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
	i, found := slices.BinarySearchFunc(b.kept, number,
		func(k pg.Block, n uint64) int { return cmp.Compare(k.Number, n) })
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

// isFinal reports whether a number is at or below the finalized block.
func (b *branch) isFinal(number uint64) bool {
	return !b.finalized.Hash.IsZero() && number <= b.finalized.Number
}

// againstFinality reports whether a block is another one than the finalized block of its number.
func (b *branch) againstFinality(ref chain.BlockRef) bool {
	return !b.finalized.Hash.IsZero() && ref.Number == b.finalized.Number && ref.Hash != b.finalized.Hash
}

// prove notes that a block is as it was published.
func (b *branch) prove(p wire.Proven) {
	for i := range b.kept {
		if b.kept[i].Hash == p.Block.Hash && b.kept[i].Attempt == p.Attempt {
			b.kept[i].Verified = true
		}
	}
}

// unproven finds the oldest block up to a number that nobody has proven and that can still be taken back: the oldest
// one that is kept cannot.
func (b *branch) unproven(number uint64) (pg.Block, bool) {
	for i, k := range b.kept {
		if i > 0 && k.Number <= number && !k.Verified {
			return k, true
		}
	}
	return pg.Block{}, false
}

// share judges a block or a range.
func (b *branch) share(s *share) (verdict, error) {
	if s.isRange() {
		return b.span(s.before, s.last)
	}
	return b.block(s.last)
}

// block judges a block: the child of the tip is applied, a known one skipped. The very first block is taken as the
// start.
func (b *branch) block(next pg.Block) (verdict, error) {
	tip, exists := b.tip()
	known, isKept := b.at(next.Number)
	switch {
	case b.againstFinality(next.BlockRef):
		return 0, contradictf("block %d %s contradicts finality: %s is finalized", next.Number, next.Hash,
			b.finalized.Hash)
	case !exists, next.Follows(tip.BlockRef):
		return apply, nil
	case isKept && known.Hash == next.Hash && next.Attempt <= known.Attempt:
		return skip, nil
	case isKept && known.Hash == next.Hash:
		return 0, haltf("block %d %s comes again as attempt %d, without a reorg to its parent before", next.Number,
			next.Hash, next.Attempt)
	case isKept && b.isFinal(next.Number):
		return 0, contradictf("block %d %s contradicts finality: %s was applied, and block %d above it is finalized",
			next.Number, next.Hash, known.Hash, b.finalized.Number)
	case isKept:
		return 0, haltf("block %d %s is of another branch than the one applied (%s), without a reorg before",
			next.Number, next.Hash, known.Hash)
	default:
		return 0, haltf("block %d %s, child of %s, does not follow block %d %s", next.Number, next.Hash, next.Parent,
			tip.Number, tip.Hash)
	}
}

// span judges a range: one that stands on the tip is applied, one whose last block is known skipped.
func (b *branch) span(before chain.BlockRef, last pg.Block) (verdict, error) {
	tip, exists := b.tip()
	switch {
	case b.againstFinality(last.BlockRef):
		return 0, contradictf("block %d %s, the last of a range, contradicts finality: %s is finalized", last.Number,
			last.Hash, b.finalized.Hash)
	case !exists, before.Number == tip.Number && before.Hash == tip.Hash:
		return apply, nil
	case b.has(last.BlockRef):
		return skip, nil
	default:
		return 0, haltf("the range from block %d to block %d stands on %s and does not follow block %d %s",
			before.Number+1, last.Number, before.Hash, tip.Number, tip.Hash)
	}
}

// extend adds an applied block or range. Under the very first block lies its parent, which a reorg may go back to;
// under a range there is nothing to go back to.
func (b *branch) extend(s *share) {
	if s.isRange() {
		b.kept = append(b.kept[:0], s.last)
		b.raise(s.last.BlockRef)
		return
	}
	if ground, exists := pg.FirstParent(s.last); exists && len(b.kept) == 0 {
		b.kept = append(b.kept, ground)
	}
	b.kept = append(b.kept, s.last)
	if surplus := len(b.kept) - chain.UndoHorizon - 1; surplus > 0 {
		b.kept = slices.Delete(b.kept, 0, surplus)
	}
}

// raise moves the finalized block up.
func (b *branch) raise(ref chain.BlockRef) {
	if !b.isFinal(ref.Number) {
		b.finalized = ref
	}
}

// reorg judges a reorg: one whose old tip is on the branch is applied. Otherwise its blocks have been taken back
// already, as can be seen by its ancestor being on the branch. Below the finalized block only an accepted one may go.
func (b *branch) reorg(r wire.Reorg) (verdict, error) {
	if !b.has(r.OldTip) && b.has(r.Ancestor) {
		return skip, nil
	}
	if err := b.reaches(r.Reorg, "reorg"); err != nil {
		return 0, err
	}
	if !r.Accepted && b.isFinal(r.Ancestor.Number+1) {
		return 0, contradictf("a reorg from block %d back to block %d contradicts finality: block %d %s is finalized",
			r.OldTip.Number, r.Ancestor.Number, b.finalized.Number, b.finalized.Hash)
	}
	return apply, nil
}

// correction judges a correction: it is applied unless the child of its ancestor has been replaced already, or taken
// back and not yet replaced.
func (b *branch) correction(c wire.Correction) (verdict, error) {
	if b.has(c.Ancestor) {
		child, applied := b.at(c.Ancestor.Number + 1)
		if !applied || child.Attempt >= c.Attempt {
			return skip, nil
		}
	}
	if err := b.reaches(c.Reorg, "correction"); err != nil {
		return 0, err
	}
	return apply, nil
}

// reaches returns why a reorg from a block of the branch to another one is impossible.
func (b *branch) reaches(r chain.Reorg, what string) error {
	tip, exists := b.tip()
	switch {
	case b.has(r.OldTip) && r.OldTip.Number > r.Ancestor.Number && b.has(r.Ancestor):
		return nil
	case exists && b.has(r.OldTip) && r.Ancestor.Number < b.kept[0].Number:
		return haltf("a %s from block %d back to block %d goes deeper than can be undone, which is block %d "+
			"(rebuild: fill a new generation from the log topic)",
			what, r.OldTip.Number, r.Ancestor.Number, b.kept[0].Number)
	}
	return haltf("a %s from block %d %s back to block %d %s does not fit block %d %s, the last one applied",
		what, r.OldTip.Number, r.OldTip.Hash, r.Ancestor.Number, r.Ancestor.Hash, tip.Number, tip.Hash)
}

// rewind takes back everything above the ancestor. An accepted one takes the finalized block along.
func (b *branch) rewind(ancestor chain.BlockRef, accepted bool) {
	for len(b.kept) > 0 && b.kept[len(b.kept)-1].Number > ancestor.Number {
		b.kept = b.kept[:len(b.kept)-1]
	}
	if tip, exists := b.tip(); exists && accepted && b.finalized.Number > ancestor.Number {
		b.finalized = tip.BlockRef
	}
}

// finalize judges a finalized block. It never goes back, and never contradicts what was applied.
func (b *branch) finalize(ref chain.BlockRef) (verdict, error) {
	known, isKept := b.at(ref.Number)
	switch {
	case isKept && known.Hash != ref.Hash:
		return 0, contradictf("block %d is finalized as %s and was applied as %s", ref.Number, ref.Hash, known.Hash)
	case b.againstFinality(ref):
		return 0, contradictf("block %d is finalized as %s and before as %s", ref.Number, ref.Hash, b.finalized.Hash)
	case b.isFinal(ref.Number):
		return skip, nil
	}
	return apply, nil
}
