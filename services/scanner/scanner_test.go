package scanner

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/perp"
)

// What stands on the topic is what the chain says, from the first block on and while it grows (PIPE-2).
func TestTopicIsTheChain(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	d.trade(1)
	d.trade(2)
	s := start(t, testConfig(d, k.Addr()), k)
	tr := newTruth(d)
	settle(t, k, tr)
	for i := range byte(5) {
		d.trade(10 + i)
	}
	all := settle(t, k, tr)

	logs, txs := 0, 0
	for p, a := range all {
		for _, b := range a.blocks {
			logs, txs = logs+len(b.logs), txs+len(b.txs)
			if b.end.Block.TimeMs/1000 == 0 || b.end.Block.TimeMs != all[0].blocks[0].end.Block.TimeMs &&
				b.end.Block.TimeMs < all[0].blocks[0].end.Block.TimeMs {
				t.Errorf("partition %d: block %d has time %d", p, b.end.Block.Number, b.end.Block.TimeMs)
			}
		}
	}
	if logs != 7*(6+partitions-1) || txs != 7*3 {
		t.Errorf("%d logs and %d transactions, want %d and %d", logs, txs, 7*(6+partitions-1), 7*3)
	}
	first := all[0].blocks[0]
	if len(first.params) != 1 || first.params[0].Key != perp.DataStoreKey("SOME_FACTOR", marketOf(1).Hash()) ||
		first.params[0].Value[31] != 42 ||
		first.params[0].Block != first.end.Block {
		t.Errorf("PARAMs of the first block: %+v", first.params)
	}
	if n := testutil.ToFloat64(s.metrics.unproven); n != 0 {
		t.Errorf("%v blocks are unproven", n)
	}
}
