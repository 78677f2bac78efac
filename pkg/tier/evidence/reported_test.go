package evidence

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// executing are the records of a block that executes orders.
func executing(at chain.BlockRef, orders ...byte) (messages []wire.Message) {
	for i, order := range orders {
		tx := chain.Hash{order, 0xee}
		messages = append(messages,
			wire.Log{Log: chain.Log{Block: at.Number, BlockHash: at.Hash, TxHash: tx, Index: uint32(i),
				Topics: []chain.Hash{{order}}}},
			wire.Tx{Tx: chain.Tx{Hash: tx, From: master, Block: at.Number, BlockHash: at.Hash, OK: true}})
	}
	return append(messages, wire.BlockEnd{Block: at, Records: uint32(len(messages))})
}

// executes plays a block that executes orders, all of whose records stand in the first partition.
func (p *tape) executes(at chain.BlockRef, orders ...byte) {
	p.t.Helper()
	p.must(p.play(0, 1, executing(at, orders...)...))
	p.must(p.play(1, 1, wire.BlockEnd{Block: at}))
}

// after is the tape of the reader that follows another one.
func (p *tape) after() *tape {
	next := newTape(p.t, 0)
	next.reported = p.reported
	return next
}

// told demands that exactly these orders were told of.
func (p *tape) told(orders ...byte) {
	p.t.Helper()
	for _, order := range orders {
		if !p.ended[chain.Hash{order}] {
			p.t.Errorf("order %d was executed, and nobody is told", order)
		}
	}
	if len(p.ended) != len(orders) {
		p.t.Errorf("told of %v, and not only of %v", p.ended, orders)
	}
}

// The next reader reports what the one before it has not: later blocks, one that only some partitions had, another
// branch, and a block of the same time as the newest. It reports nothing twice, whichever way
// the records come again.
func TestNextReaderReportsWhatIsNew(t *testing.T) {
	first := newTape(t, 0)
	first.executes(blockAt(10), 1)
	first.executes(blockAt(12), 2, 3)
	first.must(first.play(0, 1, executing(blockAt(13), 4)...)) // and the other partition could not be read
	first.told(1, 2, 3)

	branch := blockAt(12)
	branch.Hash = chain.Hash{0xbb}
	sameTime := blockAt(14)
	sameTime.TimeMs = blockAt(13).TimeMs
	next := first.after()
	next.executes(blockAt(10), 1)
	next.executes(blockAt(11), 5) // nobody had read it
	next.executes(blockAt(12), 2, 3)
	back := wire.Reorg{Reorg: chain.Reorg{Ancestor: blockAt(11), OldTip: blockAt(12)}}
	next.must(next.play(0, 1, back))
	next.must(next.play(1, 1, back))
	next.executes(branch, 6)
	next.executes(blockAt(13), 4)
	next.executes(sameTime, 7)
	next.told(4, 5, 6, 7)

	anew := next.after() // the topic was made anew, with the whole branch
	anew.executes(blockAt(10), 1)
	anew.executes(blockAt(11), 5)
	anew.executes(branch, 6)
	anew.executes(blockAt(13), 4)
	anew.executes(sameTime, 7)
	anew.executes(blockAt(15), 8)
	anew.told(8)
}

// A topic that was made anew tells all of history: what lies deeper than anything is taken back comes to nobody after
// what came later, and what lies higher and was not reported does.
func TestHistoryIsNotReportedAnew(t *testing.T) {
	const tip = 5 * chain.UndoHorizon
	first := newTape(t, 0)
	first.executes(blockAt(tip), 1)
	next := first.after()
	next.executes(blockAt(tip-chain.UndoHorizon-1), 2)
	next.executes(blockAt(tip-chain.UndoHorizon), 3)
	next.executes(blockAt(tip), 1)
	next.told(3)
}

// What was reported is remembered for as long as it could be taken back, and not much longer.
func TestReportedIsForgotten(t *testing.T) {
	p := newTape(t, 0)
	for n := range uint64(3 * chain.UndoHorizon) {
		p.executes(blockAt(n+1), 1)
	}
	if n := len(p.reported.known); n < chain.UndoHorizon || n > chain.UndoHorizon*5/4+1 {
		t.Errorf("%d executions are remembered", n)
	}
}
