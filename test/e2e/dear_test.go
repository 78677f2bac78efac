package e2e

import (
	"context"
	"fmt"
	"testing"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// The jobs that want the most gas: a swap along the longest path, an order whose callback burns 2 000 000, and a
// liquidation that cancels six orders with its position.
const (
	longestPath     = 3
	longestCallback = 2_000_000
	mostAutoCancel  = 6
)

// PIPE-5: the jobs that want the most gas are executed through all four processes.
func TestDearJobs(t *testing.T) {
	long(t)
	// what is dear takes the devnet long: with more it falls behind
	k := start(t, func(s *demo.Settings) { s.Rate = 2 })
	k.await("every dear job executed", func(ctx context.Context) error {
		if err := k.canonical.ToHead(ctx); err != nil {
			return err
		}
		return dear(k.canonical.Book)
	})
	k.finish()
}

// dear names a dear job that nobody has executed. An order that was to end with a position is cancelled in the
// transaction of the liquidation.
func dear(book *perp.Book) error {
	path, callback, most := false, false, 0
	cancelled, liquidated := map[chain.Hash]int{}, map[chain.Hash]bool{}
	for _, row := range book.Rows(perp.Orders) {
		o, ok := row.(perp.Order)
		if !ok {
			continue
		}
		if o.Status == perp.Executed {
			path = path || len(o.SwapPath) == longestPath
			callback = callback || o.OrderType != perp.Liquidation && o.CallbackGasLimit == perp.U64(longestCallback)
			liquidated[o.Stamp.TxHash] = liquidated[o.Stamp.TxHash] || o.OrderType == perp.Liquidation
		}
		if o.Status == perp.Cancelled && o.Reason == "AUTO_CANCEL" {
			cancelled[o.Stamp.TxHash]++
		}
	}
	for tx, n := range cancelled {
		if liquidated[tx] {
			most = max(most, n)
		}
	}
	if !path || !callback || most < mostAutoCancel {
		return fmt.Errorf("longest path executed: %v; longest callback: %v; most orders cancelled with a "+
			"liquidation: %d", path, callback, most)
	}
	return nil
}
