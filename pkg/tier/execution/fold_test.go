package execution

import (
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// said is a decoder whose logs say in their data which order they end.
type orderDecoder struct{}

func (orderDecoder) Transaction(logs []chain.Log, _ uint64) (events []perp.Event, err error) {
	for _, l := range logs {
		events = append(events, perp.OrderEnded{
			Key: chain.Keccak256(l.Data), Status: perp.Executed,
			Stamp: perp.Stamp{Block: l.Block, Log: l.Index, TxHash: l.TxHash},
		})
	}
	return events, nil
}

func ref(number uint64, branch string) chain.BlockRef {
	return chain.BlockRef{Number: number, Hash: chain.Keccak256([]byte(branch), []byte{byte(number)}),
		TimeMs: number * 450}
}

func orderLog(b chain.BlockRef, index uint32, order string) chain.Log {
	return chain.Log{Block: b.Number, BlockHash: b.Hash, Index: index, TxHash: chain.Keccak256([]byte(order)),
		Data: []byte(order)}
}

func txOf(b chain.BlockRef, order string) chain.Tx {
	return chain.Tx{Hash: chain.Keccak256([]byte(order)), Block: b.Number, BlockHash: b.Hash, From: chain.Address{7},
		OK: true}
}

func tellBlock(t *testing.T, f *Fold, partition int, b chain.BlockRef, s Share) []Execution {
	t.Helper()
	told, err := f.Block(partition, b, s)
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// TestPartitionsAreJoined: the log stands in one partition and the record of its transaction in another, whichever is
// read first.
func TestPartitionsAreJoined(t *testing.T) {
	b := ref(5, "a")
	shares := []Share{{Txs: []chain.Tx{txOf(b, "x")}}, {Logs: []chain.Log{orderLog(b, 3, "x")}}}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		f := NewFold(orderDecoder{}, 2)
		if told := tellBlock(t, f, order[0], b, shares[order[0]]); told != nil {
			t.Fatalf("told %v before the block was whole", told)
		}
		told := tellBlock(t, f, order[1], b, shares[order[1]])
		if len(told) != 1 || told[0].Key != chain.Keccak256([]byte("x")) || told[0].Tx.From != (chain.Address{7}) ||
			told[0].Block != b || told[0].Kind != job.Order {
			t.Fatalf("told %+v", told)
		}
		for p, s := range shares {
			if again := tellBlock(t, f, p, b, s); again != nil {
				t.Fatalf("told again: %v", again)
			}
		}
	}
}

// TestReorgDropsWhatIsNotWhole: a block that one partition had and another never got is not told, and its replacement
// is.
func TestReorgDropsWhatIsNotWhole(t *testing.T) {
	old, next, ground := ref(5, "a"), ref(5, "b"), ref(4, "a")
	f := NewFold(orderDecoder{}, 2)
	tellBlock(t, f, 0, ground, Share{})
	tellBlock(t, f, 1, ground, Share{})
	tellBlock(t, f, 1, old, Share{Logs: []chain.Log{orderLog(old, 0, "x")}})
	reorg := chain.Reorg{Ancestor: ground, OldTip: old}
	f.Undo(1, reorg)
	tellBlock(t, f, 0, next, Share{Txs: []chain.Tx{txOf(next, "x")}})
	told := tellBlock(t, f, 1, next, Share{Logs: []chain.Log{orderLog(next, 2, "x")}})
	if len(told) != 1 || told[0].Block.Hash != next.Hash {
		t.Fatalf("told %+v", told)
	}
	f.Undo(1, reorg) // read twice
	if told := tellBlock(t, f, 1, next, Share{Logs: []chain.Log{orderLog(next, 2, "x")}}); told != nil {
		t.Fatalf("told again after an old reorg: %+v", told)
	}
	// the chain comes back to the first block, which now is whole
	f.Undo(0, chain.Reorg{Ancestor: ground, OldTip: next})
	f.Undo(1, chain.Reorg{Ancestor: ground, OldTip: next})
	tellBlock(t, f, 0, old, Share{Txs: []chain.Tx{txOf(old, "x")}})
	if told := tellBlock(t, f, 1, old, Share{Logs: []chain.Log{orderLog(old, 0, "x")}}); len(told) != 1 {
		t.Fatalf("told %+v", told)
	}
}

// TestRangesMayBeCutDifferently: after a crash partitions may have history in other pieces.
func TestRangesMayBeCutDifferently(t *testing.T) {
	b, c := ref(12, "a"), ref(17, "a")
	f := NewFold(orderDecoder{}, 2)
	told, err := f.Range(1, ref(10, "a"), ref(20, "a"), []chain.BlockRef{b, c},
		Share{Logs: []chain.Log{orderLog(b, 0, "x"), orderLog(c, 0, "y")}})
	if err != nil || told != nil {
		t.Fatal(told, err)
	}
	told, err = f.Range(0, ref(10, "a"), ref(15, "a"), []chain.BlockRef{b}, Share{Txs: []chain.Tx{txOf(b, "x")}})
	if err != nil || len(told) != 1 || told[0].Block != b {
		t.Fatal(told, err)
	}
	told, err = f.Range(0, ref(15, "a"), ref(20, "a"), []chain.BlockRef{c}, Share{Txs: []chain.Tx{txOf(c, "y")}})
	if err != nil || len(told) != 1 || told[0].Block != c {
		t.Fatal(told, err)
	}
}

// TestMissingSenderIsSaid: a whole block without the record of a transaction is not understood, and not skipped.
func TestMissingSenderIsSaid(t *testing.T) {
	f := NewFold(orderDecoder{}, 1)
	b := ref(5, "a")
	if told, err := f.Block(0, b, Share{Logs: []chain.Log{orderLog(b, 0, "x")}}); err == nil {
		t.Fatalf("told %+v", told)
	}
}

// TestOldBlocksAreForgotten: memory follows the partition furthest behind.
func TestOldBlocksAreForgotten(t *testing.T) {
	f := NewFold(orderDecoder{}, 2)
	for n := range uint64(3 * retainedBlocks) {
		for p := range 2 {
			tellBlock(t, f, p, chain.BlockRef{Number: n, Hash: chain.Keccak256([]byte{byte(n), byte(n >> 8)})}, Share{})
		}
	}
	if len(f.blocks) > retainedBlocks*5/4 {
		t.Fatalf("%d blocks are remembered", len(f.blocks))
	}
	if i := slices.IndexFunc(f.partitions, func(l partition) bool { return l.tip != 3*retainedBlocks-1 }); i >= 0 {
		t.Fatalf("partition %d is at %d", i, f.partitions[i].tip)
	}
}
