package fakechain

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/perp"
	"perpkeeper/services/simulator/venue"
)

// account is what the chain keeps of a sender.
type account struct {
	nonce   uint64
	balance perp.Uint // wei
}

// block is one block, canonical or not.
type block struct {
	ref       chain.BlockRef
	parent    *block
	canonical bool
	actions   []traderAction // of traders and operators
	txs       []*included
	ended     []execution.Execution
	price     uint64 // wei per gas that others pay: who pays less is not in it
	rows      writes[perp.RowKey, perp.Row]
	accounts  writes[chain.Address, account]
}

// traderAction is what happens on the chain without a keeper: a trader's act, or a payment to an account.
type traderAction struct {
	act     venue.Act
	account chain.Address
	balance perp.Uint
}

// included is a transaction in a block.
type included struct {
	*transaction
	tx     chain.Tx
	effect venue.Effect
	logs   []chain.Log // written when they are asked for
}

// receipt is what a node says of the transaction.
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
	b := &block{ref: ref, parent: c.tip, canonical: true, price: c.price}
	c.tip, c.branch, c.blocks[ref.Hash] = b, append(c.branch, b), b
	return b
}
