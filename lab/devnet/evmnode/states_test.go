package evmnode

import (
	"math/big"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
)

// Calls on one state share what was read of it, and nothing else: what one of them writes no other sees, nor does who
// reads the state afterwards. The next block has what its transactions wrote.
func TestCallsLeaveNoTrace(t *testing.T) {
	c := start(t, Config{Manual: true}, 1)
	stored := func() uint64 {
		t.Helper()
		value, err := c.http.StorageAt(t.Context(), emitter, common.Hash{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return new(big.Int).SetBytes(value).Uint64()
	}
	had, err := c.http.BalanceAt(t.Context(), c.account(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	for block := range uint64(2) {
		var calls sync.WaitGroup
		for n := range int64(8) {
			calls.Go(func() {
				_, err := c.http.CallContract(t.Context(), ethereum.CallMsg{From: c.account(0), To: &emitter,
					Data: common.BigToHash(big.NewInt(100 + n)).Bytes()}, nil)
				if err != nil {
					t.Error(err)
				}
				_, err = c.http.CallContract(t.Context(), ethereum.CallMsg{From: c.account(0), To: &common.Address{7},
					Value: big.NewInt(1)}, nil)
				if err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if got := stored(); got != block*5 {
			t.Errorf("at height %d slot 0 is %d after calls, want %d", block, got, block*5)
		}
		if has, err := c.http.BalanceAt(t.Context(), c.account(0), nil); err != nil || has.Cmp(had) > 0 ||
			block == 0 && has.Cmp(had) != 0 {
			t.Errorf("at height %d the caller has %d after calls, and had %d (%v)", block, has, had, err)
		}
		c.emit(0, 5)
		c.mine(1)
	}
}
