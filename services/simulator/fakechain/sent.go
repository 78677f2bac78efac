package fakechain

import (
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Sent is a keeper's transaction in a block, and what it was for.
type Sent struct {
	Tx    chain.Tx
	Block chain.BlockRef
	// Kind and Key name the job; Kind is empty where it was for none.
	Kind job.Kind
	Key  chain.Hash
	// Revert is the error data of one that failed.
	Revert []byte
}

// Block returns a block by number, on the canonical branch, and whether there is one.
func (c *Chain) Block(number uint64) (ref chain.BlockRef, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number >= uint64(len(c.branch)) {
		return ref, false
	}
	return c.branch[number].ref, true
}

// Get implements perp.Rows: the rows as of the newest block, which no keeper sees before its endpoint shows it.
func (c *Chain) Get(key perp.RowKey) perp.Row {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.row(c.tip, key)
}

// Sent returns the keepers' transactions of a block, on whichever branch it stands.
func (c *Chain) Sent(block chain.Hash) (all []Sent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.blocks[block]; b != nil {
		for _, i := range b.txs {
			all = append(all, Sent{Tx: i.tx, Block: b.ref, Kind: i.effect.Kind, Key: i.effect.Key,
				Revert: i.effect.Revert})
		}
	}
	return all
}

// Ended returns what ended in a block, as pkg/execution returns it, in the chain's order. What traders ended themselves
// was sent by the zero address.
func (c *Chain) Ended(block chain.Hash) []execution.Execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.blocks[block]; b != nil {
		return b.ended
	}
	return nil
}

// Path returns how to get from one block to another: those that are left, newest first, and those that are entered,
// oldest first.
func (c *Chain) Path(from, to chain.Hash) (left, entered []chain.BlockRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	off, on := path(c.blocks[from], c.blocks[to])
	for _, b := range off {
		left = append(left, b.ref)
	}
	for _, b := range on {
		entered = append(entered, b.ref)
	}
	return left, entered
}

func path(from, to *block) (left, entered []*block) {
	for from != to {
		if from != nil && (to == nil || from.ref.Number >= to.ref.Number) {
			left, from = append(left, from), from.parent
		} else {
			entered, to = append(entered, to), to.parent
		}
	}
	slices.Reverse(entered)
	return left, entered
}
