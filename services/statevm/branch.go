package statevm

import (
	"cmp"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// branch is the chain as one partition has applied it, and the rule for what may come next. It is pure.
type branch struct {
	kept      []chain.BlockRef // ascending, the last one is the tip; as long as the undo horizon
	finalized chain.BlockRef
}

// verdict is what to do with a record.
type verdict int

const (
	apply verdict = iota + 1
	skip
)

func (b *branch) tip() (chain.BlockRef, bool) {
	if len(b.kept) == 0 {
		return chain.BlockRef{}, false
	}
	return b.kept[len(b.kept)-1], true
}

// at returns the kept block of a number.
func (b *branch) at(number uint64) (chain.BlockRef, bool) {
	i, found := slices.BinarySearchFunc(b.kept, number,
		func(k chain.BlockRef, n uint64) int { return cmp.Compare(k.Number, n) })
	if !found {
		return chain.BlockRef{}, false
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

// part judges a block or a range.
func (b *branch) part(s *blockPart) (verdict, error) {
	if s.isRange() {
		return b.span(s.before, s.last)
	}
	return b.block(s.last)
}

// block judges a block: the child of the tip is applied, a known one skipped. The very first block is taken as the
// start.
func (b *branch) block(next chain.BlockRef) (verdict, error) {
	tip, exists := b.tip()
	known, isKept := b.at(next.Number)
	switch {
	case b.againstFinality(next):
		return 0, contradictf("block %d %s contradicts finality: %s is finalized", next.Number, next.Hash,
			b.finalized.Hash)
	case !exists, next.Follows(tip):
		return apply, nil
	case isKept && known.Hash == next.Hash:
		return skip, nil
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
func (b *branch) span(before, last chain.BlockRef) (verdict, error) {
	tip, exists := b.tip()
	switch {
	case b.againstFinality(last):
		return 0, contradictf("block %d %s, the last of a range, contradicts finality: %s is finalized", last.Number,
			last.Hash, b.finalized.Hash)
	case !exists, before.Number == tip.Number && before.Hash == tip.Hash:
		return apply, nil
	case b.has(last):
		return skip, nil
	default:
		return 0, haltf("the range from block %d to block %d stands on %s and does not follow block %d %s",
			before.Number+1, last.Number, before.Hash, tip.Number, tip.Hash)
	}
}

// extend adds an applied block or range. Under the very first block lies its parent, which a reorg may go back to;
// under a range there is nothing to go back to.
func (b *branch) extend(s *blockPart) {
	if s.isRange() {
		b.kept = append(b.kept[:0], s.last)
		b.raise(s.last)
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
	if err := b.reaches(r.Reorg); err != nil {
		return 0, err
	}
	if !r.Accepted && b.isFinal(r.Ancestor.Number+1) {
		return 0, contradictf("a reorg from block %d back to block %d contradicts finality: block %d %s is finalized",
			r.OldTip.Number, r.Ancestor.Number, b.finalized.Number, b.finalized.Hash)
	}
	return apply, nil
}

// reaches returns why a reorg from a block of the branch to another one is impossible.
func (b *branch) reaches(r chain.Reorg) error {
	tip, exists := b.tip()
	switch {
	case b.has(r.OldTip) && r.OldTip.Number > r.Ancestor.Number && b.has(r.Ancestor):
		return nil
	case exists && b.has(r.OldTip) && r.Ancestor.Number < b.kept[0].Number:
		return haltf("a reorg from block %d back to block %d goes deeper than can be undone, which is block %d "+
			"(rebuild: fill a new generation from the log topic)", r.OldTip.Number, r.Ancestor.Number, b.kept[0].Number)
	}
	return haltf("a reorg from block %d %s back to block %d %s does not fit block %d %s, the last one applied",
		r.OldTip.Number, r.OldTip.Hash, r.Ancestor.Number, r.Ancestor.Hash, tip.Number, tip.Hash)
}

// rewind takes back everything above the ancestor. An accepted one takes the finalized block along.
func (b *branch) rewind(ancestor chain.BlockRef, accepted bool) {
	for len(b.kept) > 0 && b.kept[len(b.kept)-1].Number > ancestor.Number {
		b.kept = b.kept[:len(b.kept)-1]
	}
	if tip, exists := b.tip(); exists && accepted && b.finalized.Number > ancestor.Number {
		b.finalized = tip
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
