// Package signer holds the keys of a keeper and signs with them.
//
// A key comes from an encrypted keystore file (the format of geth), or, in development only, from the configuration as it is. Other places fit
// behind [Signer] as well: one that is remote, and slow.
//
// # Guaranteed
//
//   - Nothing here prints a key or a password: not in errors, not through fmt, not in logs of structures that hold a signer.
//   - A raw key is refused unless the configuration says dev.
//   - A signature is for one chain: it is worthless on any other.
//
// # Not guaranteed
//
//   - A key in memory can be read by whoever can read the process's memory, and its pages may be swapped or dumped.
package signer

import (
	"context"

	"perpkeeper/pkg/chain"
)

// Tx is a transaction before it is signed: a call without value.
type Tx struct {
	ChainID uint64
	Nonce   uint64
	To      chain.Address
	Data    []byte
	Gas     uint64
	// Tip and Cap are wei per gas.
	Tip, Cap uint64
}

// Signer is one account that sends transactions.
type Signer interface {
	Address() chain.Address
	// Sign returns the bytes to broadcast and the hash the chain will know them by. The same transaction yields the same bytes.
	Sign(ctx context.Context, tx Tx) (raw []byte, hash chain.Hash, err error)
}
