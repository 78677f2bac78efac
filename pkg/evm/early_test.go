package evm

import (
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
)

// A block and its receipts take one trip together, and are what they are one after the other.
func TestReceiptsComeWithTheirBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(1, 8)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(delay(20*time.Millisecond, methodBlock, methodReceipts))
		began := time.Now()
		block, err := c.BlockWithReceipts(t.Context(), truth.ref(4).Hash)
		if err != nil || block.BlockRef != truth.ref(4) {
			t.Fatalf("%+v, %v", block, err)
		}
		receipts, err := c.Receipts(t.Context(), block)
		if err != nil || len(receipts) != 1 || len(receipts[0].Logs) != len(truth[4].logs) {
			t.Errorf("%+v, %v", receipts, err)
		}
		if took := time.Since(began); took != 20*time.Millisecond || nodes[0].count(methodReceipts) != 1 {
			t.Errorf("it took %s and %d requests", took, nodes[0].count(methodReceipts))
		}
	})
}

// Without the block nobody waits for its receipts.
func TestNoReceiptsOfNoBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(1, 8)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(hang(methodReceipts))
		if _, err := c.BlockWithReceipts(t.Context(), chain.Hash{1}); !NotFound(err) {
			t.Error(err)
		}
	})
}

// PIPE-13: every lie about receipts that is told early is found by the block's header, as when it is told late.
func TestEarlyLiesAreNotBelieved(t *testing.T) {
	for _, l := range lies(newFakeChain(50, 0, func(n int) int { return (n + 1) % 3 })) {
		if l.out != ForReceipts {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(2, 50)
				c, _ := dialFakes(t, nil, nodes...)
				nodes[0].inject(l.told)
				prefer(c.pool.public[0])
				block, err := c.BlockWithReceipts(t.Context(), truth.ref(40).Hash)
				if err != nil {
					t.Fatal(err)
				}
				receipts, err := c.Receipts(t.Context(), block)
				if err != nil || len(receipts) != 1 || len(receipts[0].Logs) != 2 ||
					receipts[0].Logs[0].Address != venue {
					t.Errorf("%+v, %v", receipts, err)
				}
				if r := excluded(c, 0, ForReceipts); r != ReasonLied {
					t.Errorf("excluded for %q", r)
				}
			})
		})
	}
}
