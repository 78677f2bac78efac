package job

import (
	"bytes"

	"perpkeeper/pkg/chain"
)

// Route chooses the signer of an account's jobs by rendezvous hashing: each signer's weight is keccak256(account ‖
// signer) and the highest wins. Adding or removing a signer moves only the accounts that it gains or loses. It returns
// the zero address when there is no signer.
func Route(account chain.Address, signers []chain.Address) chain.Address {
	var best chain.Address
	var weight chain.Hash
	for _, s := range signers {
		w := chain.Keccak256(account[:], s[:])
		if best.IsZero() || bytes.Compare(w[:], weight[:]) > 0 {
			best, weight = s, w
		}
	}
	return best
}
