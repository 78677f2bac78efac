package txmanager

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
)

// feeHistory is a node on which each of the last blocks was paid one price.
type feeHistory struct {
	Node
	paid []uint64
}

func (feeHistory) GasPrice(context.Context) (uint64, error) { return txm.Gwei / 20, nil }

func (n feeHistory) Tips(_ context.Context, _ int, shares []uint64) (tips [][]uint64, err error) {
	for _, price := range n.paid {
		block := make([]uint64, len(shares))
		for i := range block {
			block[i] = price
		}
		tips = append(tips, block)
	}
	return tips, nil
}

// NON-16: what this keeper has paid itself is no market: after a jam the next transaction begins at what others pay. A
// price that was ours long ago is anybody's.
func TestKeeperDoesNotOutbidItself(t *testing.T) {
	heads := headtrack.New(time.Now)
	heads.Set(chain.BlockRef{Number: 100}, time.Now())
	m := &market{node: feeHistory{paid: []uint64{5 * txm.Gwei, 5 * txm.Gwei, txm.Gwei / 10}}, heads: heads,
		limits: limits{}, log: zerolog.Nop()}
	first := func() uint64 {
		now, err := m.ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return txm.DefaultPolicy().First(job.LiquidationLane, 1_000_000, now)
	}
	if got := first(); got != 5*txm.Gwei {
		t.Errorf("others pay 5 gwei, and it begins at %d wei", got)
	}
	m.offered(5 * txm.Gwei)
	if got := first(); got != txm.Gwei/10+1 {
		t.Errorf("others pay 0.1 gwei, and it begins at %d wei", got)
	}
	heads.Set(chain.BlockRef{Number: 101 + marketOld}, time.Now())
	if got := first(); got != 5*txm.Gwei {
		t.Errorf("what was offered long ago counts as ours: it begins at %d wei", got)
	}
}

// NON-16: what waits behind our own is not too cheap. A block that took one of ours for no more shows it, unless others
// pay more: then ours came last into what they left.
func TestOurOwnCrowdIsNoReasonToRaise(t *testing.T) {
	heads := headtrack.New(time.Now)
	heads.Set(chain.BlockRef{Number: 100}, time.Now())
	own, jam := uint64(txm.Gwei/20+2), uint64(txm.Gwei)
	for what, c := range map[string]struct {
		others []uint64
		block  uint64 // of the receipt
		price  uint64 // of what waits
		want   uint64
		lane   job.Lane
	}{
		"as cheap":                     {nil, 98, own, 98, job.LiquidationLane},
		"dearer":                       {nil, 98, 2 * own, 98, job.LiquidationLane},
		"cheaper":                      {nil, 98, own - 1, 0, job.LiquidationLane},
		"an order beside liquidations": {nil, 98, own - 1, 98, job.OrderLane},
		"an order far below them":      {nil, 98, own - 2, 0, job.OrderLane},
		"others pay more":              {[]uint64{jam, jam, jam}, 98, own, 0, job.LiquidationLane},
		"a block that is to come":      {nil, 1 << 60, own, 100, job.LiquidationLane},
	} {
		m := &market{node: feeHistory{paid: c.others}, heads: heads, limits: limits{}, log: zerolog.Nop()}
		if _, err := m.ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.took(own, c.block)
		if got := m.enough(c.lane, c.price); got != c.want {
			t.Errorf("%s: block %d shows that the price is enough, want %d", what, got, c.want)
		}
	}
}
