package perp

import (
	"testing"

	"perpkeeper/pkg/chain"
)

// LIQ-11: a settlement stands under its order, a fee under its log: a transaction may pay several.
func TestSettlementsAndFeesAreKept(t *testing.T) {
	tx := chain.Hash{7}
	first := KeeperPaid{KeeperFee{Keeper: trader, Amount: chain.U64(5), Stamp: Stamp{Block: 1, Log: 3, TxHash: tx}}}
	second := KeeperPaid{KeeperFee{Keeper: trader, Amount: chain.U64(6), Stamp: Stamp{Block: 1, Log: 4, TxHash: tx}}}
	settled := PositionSettled{Settlement{OrderKey: chain.Hash{9}, Account: trader, TotalCostAmount: chain.U64(8),
		Stamp: Stamp{Block: 1, Log: 2, TxHash: tx}}}
	b := mustApply(t, settled, first, second)
	if n := len(b.Rows(KeeperFees)); n != 2 {
		t.Errorf("%d fees are kept, want 2", n)
	}
	if got := b.Get(RowKey{Settlements, chain.Hash{9}}); got != Row(settled.Settlement) {
		t.Errorf("got %+v", got)
	}
	for _, e := range []Event{settled, first, second} {
		if keys := e.Touches(); len(keys) != 1 || b.Get(keys[0]) == nil {
			t.Errorf("%T names the rows %v", e, keys)
		}
	}
}
