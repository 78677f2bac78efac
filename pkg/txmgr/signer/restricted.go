package signer

import (
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
)

// Restrict makes a signer that signs nothing but what is allowed, whoever asks it: a transaction to a contract, with
// calldata, and without value.
func Restrict(s Signer, allowed func(to chain.Address, calldata []byte) bool) Signer {
	return restricted{s, allowed}
}

type restricted struct {
	Signer
	allowed func(to chain.Address, calldata []byte) bool
}

// Sign implements Signer.
func (r restricted) Sign(ctx context.Context, tx Tx) ([]byte, chain.Hash, error) {
	if tx.Value != 0 || !r.allowed(tx.To, tx.Data) {
		return nil, chain.Hash{}, fmt.Errorf("signer %s signs no call of %s with 0x%x: it is not among those that are "+
			"configured", r.Address(), tx.To, tx.Data)
	}
	return r.Signer.Sign(ctx, tx)
}
