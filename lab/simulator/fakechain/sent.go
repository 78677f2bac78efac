package fakechain

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/txmgr/signer"
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

// Ended returns what ended in a block, as pkg/tier/execution returns it, in the chain's order. What traders ended themselves
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

// Signer signs by writing its name: whoever makes one for an account is that account. Real signatures would cost a
// simulation most of its time, and nothing here could forge them. It implements signer.Signer.
type Signer struct{ Account chain.Address }

// Address implements signer.Signer.
func (s Signer) Address() chain.Address { return s.Account }

// Sign implements signer.Signer.
func (s Signer) Sign(_ context.Context, tx signer.Tx) (raw []byte, hash chain.Hash, err error) {
	raw = slices.Concat(s.Account[:], tx.To[:])
	for _, n := range []uint64{tx.ChainID, tx.Nonce, tx.Gas, tx.Tip, tx.Cap} {
		raw = binary.BigEndian.AppendUint64(raw, n)
	}
	raw = append(raw, tx.Data...)
	return raw, chain.Keccak256(raw), nil
}

// transaction is a signed one.
type transaction struct {
	signer.Tx
	from  chain.Address
	hash  chain.Hash
	ready uint64 // ms: from when on every miner has it
}

var errNoTransaction = errors.New("rlp: expected input list")

// read is the inverse of Sign.
func read(raw []byte) (tx *transaction, err error) {
	const header = 20 + 20 + 5*8
	if len(raw) < header {
		return nil, fmt.Errorf("reading a transaction of %d bytes: %w", len(raw), errNoTransaction)
	}
	tx = &transaction{from: chain.Address(raw[:20]), hash: chain.Keccak256(raw)}
	tx.To, tx.Data = chain.Address(raw[20:40]), raw[header:]
	for n, into := range []*uint64{&tx.ChainID, &tx.Nonce, &tx.Gas, &tx.Tip, &tx.Cap} {
		*into = binary.BigEndian.Uint64(raw[40+8*n:])
	}
	return tx, nil
}

// price is what a unit of gas pays where the base fee is zero.
func (t *transaction) price() uint64 { return min(t.Tip, t.Cap) }
