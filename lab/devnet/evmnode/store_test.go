package evmnode

import (
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// A chain in a folder keeps every state, as one in memory does; a folder that has one is refused.
func TestChainInAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "chain")
	c := start(t, Config{Dir: dir, Manual: true}, 1)
	c.emit(0, 5)
	c.mine(1)
	c.emit(0, 6)
	c.mine(300)
	for block, want := range map[int64]int64{1: 5, 2: 6, 301: 6} {
		value, err := c.http.StorageAt(t.Context(), emitter, common.Hash{}, big.NewInt(block))
		if err != nil || new(big.Int).SetBytes(value).Int64() != want {
			t.Errorf("at height %d slot 0 is %x, want %d (%v)", block, value, want, err)
		}
	}
	if _, err := New(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("the folder of another chain was taken: %v", err)
	}
}
