package scanner

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
)

// branch is a run of blocks, each the child of the one before, the newest ones of a partition. It is pure.
type branch struct {
	blocks []chain.BlockRef
	// endsRange reports that the oldest block is the end of a range: what is below it cannot be undone, and is never
	// needed.
	endsRange bool
}

func (b *branch) empty() bool { return len(b.blocks) == 0 }

// tip is the newest block. The branch must not be empty.
func (b *branch) tip() chain.BlockRef { return b.blocks[len(b.blocks)-1] }

// oldest is the oldest block that is remembered. The branch must not be empty.
func (b *branch) oldest() chain.BlockRef { return b.blocks[0] }

// at returns the block of a number.
func (b *branch) at(number uint64) (chain.BlockRef, bool) {
	if b.empty() || number < b.oldest().Number || number > b.tip().Number {
		return chain.BlockRef{}, false
	}
	return b.blocks[number-b.oldest().Number], true
}

// has reports whether a block is on the branch.
func (b *branch) has(ref chain.BlockRef) bool {
	known, ok := b.at(ref.Number)
	return ok && known.Hash == ref.Hash
}

// reaches reports whether readers can go back to a block of the branch: they keep so many blocks below the tip, and up
// to twice as many are remembered here.
func (b *branch) reaches(ancestor chain.BlockRef) bool {
	return b.tip().Number-ancestor.Number <= chain.UndoHorizon
}

// find returns the block of a hash.
func (b *branch) find(hash chain.Hash) (chain.BlockRef, bool) {
	i := slices.IndexFunc(b.blocks, func(p chain.BlockRef) bool { return p.Hash == hash })
	if i < 0 {
		return chain.BlockRef{}, false
	}
	return b.blocks[i], true
}

// push adds a child of the tip. Onto an empty branch it puts the block and, under it, what is known of its parent: a
// reorg may go back to it.
func (b *branch) push(block chain.BlockRef) error {
	if b.empty() {
		b.blocks = []chain.BlockRef{{Number: block.Number - 1, Hash: block.Parent}}
	}
	if !block.Follows(b.tip()) {
		return fmt.Errorf("block %d %s, child of %s, does not follow block %d %s", block.Number, block.Hash,
			block.Parent, b.tip().Number, b.tip().Hash)
	}
	b.blocks = append(b.blocks, block)
	if len(b.blocks) > 2*chain.UndoHorizon {
		b.blocks = slices.Clone(b.blocks[len(b.blocks)-chain.UndoHorizon-1:])
		b.endsRange = false
	}
	return nil
}

// extend adds a range behind the tip, or begins with it. Nothing below its last block is remembered: a range cannot be
// undone.
func (b *branch) extend(before, last chain.BlockRef) error {
	if !b.empty() && (b.tip().Number != before.Number || b.tip().Hash != before.Hash) {
		return fmt.Errorf("a range behind block %d %s does not follow block %d %s", before.Number, before.Hash, b.tip().
			Number, b.tip().Hash)
	}
	*b = branch{blocks: []chain.BlockRef{last}, endsRange: true}
	return nil
}

// cut takes back everything above an ancestor, and reports whether the ancestor is on the branch.
func (b *branch) cut(ancestor chain.BlockRef) bool {
	if !b.has(ancestor) {
		return false
	}
	b.blocks = b.blocks[:ancestor.Number-b.oldest().Number+1]
	return true
}

// need is what a branch needs so that a block becomes its tip, or stays below it.
type need int

const (
	held  need = iota // nothing: the block is on the branch, or below what it remembers
	child             // the block follows the tip
	fork              // everything above the block's parent has to be taken back first
	lower             // older blocks have to be looked at first: the parent is not on the branch
)

// needs compares a block of the chain with a branch that is not empty. For fork, ancestor is the block's parent.
func (b *branch) needs(block chain.BlockRef) (n need, ancestor chain.BlockRef) {
	if block.Number < b.oldest().Number || b.has(block) {
		return held, chain.BlockRef{}
	}
	if block.Follows(b.tip()) {
		return child, chain.BlockRef{}
	}
	if parent, ok := b.at(block.Number - 1); ok && parent.Hash == block.Parent {
		return fork, parent
	}
	return lower, chain.BlockRef{}
}
