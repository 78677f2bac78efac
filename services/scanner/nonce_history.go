package scanner

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// nonceHistory holds the signers' nonces at final blocks, as two hosts have them. An account's nonce never falls: what
// lies between two blocks with the same nonce is known as well, and so is all that lies below a nonce of 0. It is safe
// for concurrent use.
type nonceHistory struct {
	mu         sync.Mutex
	points     map[chain.Address][]noncePoint // by block
	complained bool
}

// noncePoint is a nonce after a block.
type noncePoint struct{ block, nonce uint64 }

func newNonceHistory() *nonceHistory {
	return &nonceHistory{points: map[chain.Address][]noncePoint{}}
}

// at returns a nonce, if it is known.
func (h *nonceHistory) at(a evm.AccountAt) (nonce uint64, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	points, i, exact := h.find(a)
	switch {
	case exact:
		return points[i].nonce, true
	case i == len(points):
		return 0, false
	case i == 0:
		return 0, points[0].nonce == 0
	default:
		return points[i].nonce, points[i-1].nonce == points[i].nonce
	}
}

// find returns where a block stands among the points of an account. The mutex is held.
func (h *nonceHistory) find(a evm.AccountAt) (points []noncePoint, i int, exact bool) {
	points = h.points[a.Account]
	i, exact = slices.BinarySearchFunc(points, a.Block, func(p noncePoint, block uint64) int {
		return cmp.Compare(p.block, block)
	})
	return points, i, exact
}

// note adds what two hosts agree on. It fails where that contradicts what two hosts have agreed on before.
func (h *nonceHistory) note(a evm.AccountAt, nonce uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	points, i, exact := h.find(a)
	lower, upper := uint64(0), nonce
	if i > 0 {
		lower = points[i-1].nonce
	}
	if exact {
		lower = points[i].nonce
	}
	if i < len(points) {
		upper = points[i].nonce
	}
	switch {
	case nonce < lower || nonce > upper:
		return fmt.Errorf("%w: %s has nonce %d at block %d, and had %d before and %d after", errNonces, a.Account,
			nonce, a.Block, lower, upper)
	case exact:
	case i > 1 && i == len(points) && points[i-1].nonce == nonce && points[i-2].nonce == nonce:
		points[i-1].block = a.Block // what lies between is known without it
	default:
		h.points[a.Account] = slices.Insert(points, i, noncePoint{a.Block, nonce})
	}
	return nil
}

// complain reports whether nobody has complained yet.
func (h *nonceHistory) complain() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.complained
	h.complained = true
	return first
}
