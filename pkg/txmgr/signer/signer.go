// Package signer holds the keys of a keeper and signs with them.
//
// Keys come from exactly one place: encrypted keystore files (the format of geth), a remote signer that is asked over
// mutually authenticated TLS and keeps the keys to itself, or, in development only, the configuration as it is.
//
// # Guaranteed
//
//   - Nothing here prints a key or a password: not in errors, not through fmt, not in logs of structures that hold a
//     signer.
//   - A raw key is refused unless the configuration says dev, and a file that holds a key or a password is refused
//     while every user of the machine can read or change it.
//   - A signature is for one chain: it is worthless on any other.
//   - What a remote signer answers is believed only if it is the transaction that was asked for, in every field, signed
//     by the account that was asked.
//
// # Not guaranteed
//
//   - A key in memory can be read by whoever can read the process's memory, and its pages may be swapped or dumped.
//   - A remote signer that does not answer in time may have signed: it has seen everything that makes a valid
//     transaction. Whoever asks must not take silence for "never signed" unless the bytes cannot leave that signer.
package signer

import (
	"context"

	"perpkeeper/pkg/chain"
)

// Tx is a transaction before it is signed.
type Tx struct {
	ChainID uint64
	Nonce   uint64
	To      chain.Address
	Data    []byte
	Value   uint64 // wei
	Gas     uint64
	// Tip and Cap are wei per gas.
	Tip, Cap uint64
}

// Signer is one account that sends transactions.
type Signer interface {
	Address() chain.Address
	// Sign returns the bytes to broadcast and the hash the chain will know them by. A key that is here yields the same
	// bytes for the same transaction; a remote one may not, and may take its time.
	Sign(ctx context.Context, tx Tx) (raw []byte, hash chain.Hash, err error)
}
