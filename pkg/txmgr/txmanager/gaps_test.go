package txmanager

import (
	"context"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/txm"
	"slices"
	"testing"
	"time"
)

// A released number is left to the next job for two blocks, and then filled if something above it waits.
func TestGaps(t *testing.T) {
	var filled []uint64
	h := headsAt(nowMs, time.Now())
	at := func(block uint64) { h.Set(chain.BlockRef{Number: block}, time.Now()) }
	g := gaps{heads: h, since: map[uint64]uint64{}, fill: func(_ context.Context, n uint64) error {
		filled = append(filled, n)
		return nil
	}}
	pass := func(want bool, inFlight ...uint64) {
		t.Helper()
		var flying []txm.PendingTx
		for _, n := range inFlight {
			flying = append(flying, txm.PendingTx{Intent: txm.Intent{Nonce: n}})
		}
		if tried, err := g.pass(t.Context(), []uint64{3, 7}, flying); tried != want || err != nil {
			t.Errorf("tried %t, %v", tried, err)
		}
	}
	at(100)
	pass(false)
	at(105)
	pass(false, 5)
	at(106)
	pass(false, 5)
	at(107)
	pass(true, 5)
	if !slices.Equal(filled, []uint64{3}) {
		t.Errorf("filled %v: number 7 keeps nobody waiting", filled)
	}
}
