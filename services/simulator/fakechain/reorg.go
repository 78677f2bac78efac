package fakechain

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
)

// ReorgedTxs is what becomes of keepers' transactions whose blocks leave the chain.
type ReorgedTxs int

// What becomes of them.
const (
	Replayed  ReorgedTxs = iota // the new branch has them in the same places
	Returned                    // they wait again
	Forgotten                   // nobody has them but their senders
)

// Reorg replaces the newest blocks by as many others of the same times, and mines one more on top, now. What traders
// did they do again, in the same places. It fails, with the chain unchanged, where a final block would be replaced:
// hold finality first.
func (c *Chain) Reorg(depth uint64, txs ReorgedTxs) (chain.Reorg, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if height := c.tip.ref.Number; depth == 0 || depth > height-c.final.ref.Number {
		return chain.Reorg{}, fmt.Errorf("replacing %d blocks of height %d: block %d is final", depth, height,
			c.final.ref.Number)
	}
	old := c.leave(depth)
	what := chain.Reorg{Ancestor: c.tip.ref, OldTip: old[len(old)-1].ref}
	for _, b := range old {
		c.build(b.ref.TimeMs, b.actions)
		c.tip.price = b.price
		for _, i := range b.txs {
			switch txs {
			case Replayed:
				c.include(i.transaction)
			case Returned:
				c.pool.put(i.transaction)
			case Forgotten:
			}
		}
	}
	c.mine()
	return what, nil
}

// leave takes the newest blocks off the canonical branch and returns them, oldest first.
func (c *Chain) leave(depth uint64) (old []*block) {
	for range depth {
		b := c.tip
		b.rows.leave(c.rows)
		b.accounts.leave(c.accounts)
		for _, i := range b.txs {
			delete(c.mined, i.hash)
		}
		b.canonical = false
		c.tip, c.branch = b.parent, c.branch[:len(c.branch)-1]
		old = append(old, b)
	}
	slices.Reverse(old)
	return old
}
