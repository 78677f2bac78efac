package fakechain

import (
	"encoding/binary"
	"fmt"
	"slices"

	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
)

// account is what the chain keeps of a sender.
type account struct {
	nonce   uint64
	balance chain.Uint // wei
}

// block is one block, canonical or not.
type block struct {
	ref       chain.BlockRef
	parent    *block
	canonical bool
	actions   []traderAction // of traders and operators
	txs       []*included
	ended     []execution.Execution
	rows      writes[perp.RowKey, perp.Row]
	accounts  writes[chain.Address, account]
}

// traderAction is what happens on the chain without a keeper: a trader's act, or a payment to an account.
type traderAction struct {
	act     venue.Act
	account chain.Address
	balance chain.Uint
}

// included is a transaction in a block.
type included struct {
	*transaction
	tx     chain.Tx
	effect venue.Effect
	logs   []chain.Log // written when they are asked for
}

// receipt is the node's receipt of the transaction.
func (i *included) receipt() *evm.Receipt {
	if i.logs == nil {
		i.logs = venue.Logs(i.effect.Events)
		for n := range i.logs {
			l := &i.logs[n]
			l.Block, l.BlockHash, l.TxHash, l.TxIndex = i.tx.Block, i.tx.BlockHash, i.tx.Hash, i.tx.Index
		}
	}
	return &evm.Receipt{Tx: i.tx, Logs: i.logs}
}

// row returns a row as of a block, on whichever branch it stands.
func (c *Chain) row(at *block, key perp.RowKey) perp.Row {
	for ; !at.canonical; at = at.parent {
		if row, wrote := at.rows.orphan[key]; wrote {
			return row
		}
	}
	row, _ := c.rows.at(at.ref.Number, key)
	return row
}

// account returns an account as of a block.
func (c *Chain) account(at *block, address chain.Address) account {
	for ; !at.canonical; at = at.parent {
		if a, wrote := at.accounts.orphan[address]; wrote {
			return a
		}
	}
	a, _ := c.accounts.at(at.ref.Number, address)
	return a
}

// inclusion finds a transaction in the branch that ends with a block, or returns nil.
func (c *Chain) inclusion(at *block, hash chain.Hash) *included {
	for ; !at.canonical; at = at.parent {
		for _, i := range at.txs {
			if i.hash == hash {
				return i
			}
		}
	}
	if i := c.mined[hash]; i != nil && i.tx.Block <= at.ref.Number {
		return i
	}
	return nil
}

// setAccount writes to the newest block.
func (c *Chain) setAccount(address chain.Address, a account) {
	if c.accounts.put(c.tip.ref.Number, address, a) {
		c.tip.accounts.keys = append(c.tip.accounts.keys, address)
	}
}

// newest is a perp.State over the newest block.
type newest struct{ *Chain }

// Get implements perp.State.
func (c newest) Get(key perp.RowKey) perp.Row { return c.row(c.tip, key) }

// Put implements perp.State.
func (c newest) Put(row perp.Row) {
	key := row.RowKey()
	if c.rows.put(c.tip.ref.Number, key, row) {
		c.tip.rows.keys = append(c.tip.rows.keys, key)
	}
}

// begin puts a new block on top of the canonical branch. Its hash is new even where all in it is as in another one.
func (c *Chain) begin(timeMs uint64) *block {
	c.made++
	ref := chain.BlockRef{TimeMs: timeMs}
	if c.tip != nil {
		ref.Number, ref.Parent = c.tip.ref.Number+1, c.tip.ref.Hash
	}
	salt := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(ref.Parent[:], c.cfg.Seed), c.made)
	ref.Hash = chain.Keccak256(salt)
	b := &block{ref: ref, parent: c.tip, canonical: true}
	c.tip, c.branch, c.blocks[ref.Hash] = b, append(c.branch, b), b
	return b
}

// Reorg replaces the newest blocks by as many others of the same times, and mines one more on top, now. What traders
// did they do again, in the same places; the keepers' transactions wait again, or nobody has them but their senders. It
// fails, with the chain unchanged, where a final block would be replaced: hold finality first.
func (c *Chain) Reorg(depth uint64, forget bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if height := c.tip.ref.Number; depth == 0 || depth > height-c.final.ref.Number {
		return fmt.Errorf("replacing %d blocks of height %d: block %d is final", depth, height,
			c.final.ref.Number)
	}
	old := c.leave(depth)
	for _, b := range old {
		c.build(b.ref.TimeMs, b.actions)
		for _, i := range b.txs {
			if !forget {
				c.pool.put(i.transaction)
			}
		}
	}
	c.mine()
	return nil
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
