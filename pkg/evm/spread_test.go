package evm

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Many requests at a time go to all good endpoints, as each is fast; one at a time goes to the best.
func TestHistoryIsReadFromAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 120)
		c, _ := dialFakes(t, func(cfg *Config) { cfg.HedgeAfter = time.Second }, nodes...)
		for i, took := range []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
			nodes[i].inject(delay(took, "batch", methodBlock, methodReceipts))
			c.pool.public[i].vitals.latency = milliseconds(took)
		}
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if headers, err := c.Blocks(t.Context(), 10, 100); err != nil || len(headers) != 91 {
					t.Errorf("%d headers, %v", len(headers), err)
				}
			})
			synctest.Wait() // The next is to see that this one is under way.
		}
		for i := range 40 {
			wg.Go(func() {
				block, err := c.BlockWithReceipts(t.Context(), truth.ref(3*i+1).Hash)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := c.Receipts(t.Context(), block); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		for _, method := range []string{"batch", methodBlock} {
			fast, other, slow := nodes[0].count(method), nodes[1].count(method), nodes[2].count(method)
			if min(fast, other) < 10 || slow > 10 {
				t.Errorf("%s: %d, %d and %d requests", method, fast, other, slow)
			}
		}
		before := nodes[2].count("batch")
		for range 10 {
			if _, err := c.Blocks(t.Context(), 10, 100); err != nil {
				t.Error(err)
			}
		}
		if n := nodes[2].count("batch") - before; n > 0 {
			t.Errorf("the slow one was asked %d times for nothing", n)
		}
	})
}
