package fakechain

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/signer"
)

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
