package signer

import (
	"context"
	"crypto/ecdsa"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/chain"
)

// local signs with a key in memory.
type local struct {
	address chain.Address
	key     *ecdsa.PrivateKey
}

func newLocal(key *ecdsa.PrivateKey) *local {
	return &local{address: chain.Address(crypto.PubkeyToAddress(key.PublicKey)), key: key}
}

// Address implements [Signer].
func (l *local) Address() chain.Address { return l.address }

// Sign implements [Signer]. Signatures are deterministic (RFC 6979).
func (l *local) Sign(_ context.Context, tx Tx) ([]byte, chain.Hash, error) {
	signed, err := types.SignNewTx(l.key, tx.signer(), tx.unsigned())
	if err != nil {
		return nil, chain.Hash{}, fmt.Errorf("signing nonce %d of %s: %w", tx.Nonce, l.address, err)
	}
	raw, err := signed.MarshalBinary()
	if err != nil {
		return nil, chain.Hash{}, fmt.Errorf("encoding nonce %d of %s: %w", tx.Nonce, l.address, err)
	}
	return raw, chain.Hash(signed.Hash()), nil
}

// Format prints the address for every verb, so that no way of printing a structure reaches the key.
func (l *local) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(l.address.Hex())) }

// MarshalText is what encoders print.
func (l *local) MarshalText() ([]byte, error) { return l.address.MarshalText() }
