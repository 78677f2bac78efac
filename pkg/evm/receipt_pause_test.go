package evm

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
)

// While every endpoint answers single receipts with an error of its own, as one that builds its index anew does, fifty
// transactions that are asked for at every block cost a few requests; once one is served, all are within the longest
// pause.
func TestReceiptsThatNobodyServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(3, 4)
		for _, n := range nodes {
			n.inject(refuse(refusal(-32000, "transaction indexing is in progress"), methodReceipt))
		}
		c, _ := dialFakes(t, nil, nodes...)
		ask := func() (failed int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					_, err := c.Receipt(t.Context(), chain.Hash{byte(i + 1)})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						failed++
						if !strings.Contains(err.Error(), "indexing is in progress") {
							t.Errorf("it is not said why: %v", err)
						}
					}
				})
			}
			all.Wait()
			return failed
		}
		const blocks = 100
		for range blocks {
			if failed := ask(); failed != 50 {
				t.Fatalf("%d of 50 failed", failed)
			}
			time.Sleep(450 * time.Millisecond)
		}
		total := 0
		for _, n := range nodes {
			total += n.count(methodReceipt)
		}
		if total > 50*3+3*12 { // the first round, which knew of nothing, and one try for all in each pause
			t.Errorf("%d requests for %d blocks", total, blocks)
		}
		for _, n := range nodes {
			n.inject(func(_ context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
				return nil, nil, method == methodReceipt // there is none
			})
		}
		time.Sleep(longestReceiptPause)
		ask()
		if failed := ask(); failed != 0 {
			t.Errorf("%d of 50 fail still", failed)
		}
	})
}
