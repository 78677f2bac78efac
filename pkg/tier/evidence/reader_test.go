package evidence

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
)

// endings decodes every log as the execution of the order that its first topic names. One without a topic is no event.
type endings struct{}

func (endings) Transaction(logs []chain.Log, timeMs uint64) (events []perp.Event, err error) {
	for _, l := range logs {
		if len(l.Topics) == 0 {
			return nil, errors.New("a log without a topic")
		}
		events = append(events, perp.OrderEnded{
			Key: l.Topics[0], Status: perp.Executed, Stamp: perp.Stamp{Block: l.Block, Log: l.Index, TxHash: l.TxHash,
				TimeMs: timeMs},
		})
	}
	return events, nil
}

// tape feeds records to a reader of two partitions, and remembers what it tells.
type tape struct {
	*Reader
	t      *testing.T
	next   [2]int64
	ended  map[chain.Hash]bool // keys of what was executed
	readMs uint64
}

func newTape(t *testing.T, from int64) *tape {
	p := &tape{t: t, next: [2]int64{from, from}, ended: map[chain.Hash]bool{}}
	p.Reader = NewReader(nil, wire.Config{LogPartitions: 2}, endings{}, p, nil)
	for partition := range p.feeds {
		p.feeds[partition] = feed{claim: wire.Claim(1 - min(from, 1)), certain: from == 0, begun: from == 0}
	}
	return p
}

func (p *tape) Published(job.Job) {}

func (p *tape) Executed(found []execution.Execution) {
	for _, e := range found {
		p.ended[e.Key] = true
	}
}

func (p *tape) Read(blockMs uint64) { p.readMs = blockMs }

func (p *tape) play(partition int, epoch uint64, messages ...wire.Message) error {
	p.t.Helper()
	for _, m := range messages {
		r, err := wire.Encode([]byte("key"), m, epoch, 0)
		if err != nil {
			p.t.Fatal(err)
		}
		r.Partition, r.Offset = partition, p.next[partition]
		p.next[partition]++
		if err := p.logRecord(r); err != nil {
			return err
		}
	}
	return nil
}

func blockAt(n uint64) chain.BlockRef {
	return chain.BlockRef{Number: n, Hash: chain.Hash{byte(n), byte(n >> 8)},
		Parent: chain.Hash{byte(n - 1), byte((n - 1) >> 8)}, TimeMs: n * 450}
}

// execution of an order by a sender, as its two partitions say it.
func (p *tape) block(n uint64, order byte, sender chain.Address) (logs, txs []wire.Message) {
	at, tx := blockAt(n), chain.Hash{byte(n), byte(n >> 8), order, 1}
	logs = []wire.Message{
		wire.Log{Log: chain.Log{Block: n, BlockHash: at.Hash, TxHash: tx, Topics: []chain.Hash{{order}}}},
		wire.BlockEnd{Block: at, Records: 1},
	}
	txs = []wire.Message{wire.Tx{Tx: chain.Tx{Hash: tx, From: sender, Block: n, BlockHash: at.Hash, OK: true}},
		wire.BlockEnd{Block: at, Records: 1}}
	return logs, txs
}

var (
	order  = chain.Hash{1}
	master = chain.Address{0x11}
)

func (p *tape) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// TIER-10: an execution is known when all partitions have its block; what was read is told when the past of all of them
// has been, as far as the slowest one is.
func TestReaderJoinsPartitions(t *testing.T) {
	p := newTape(t, 0)
	const n = 10
	logs, txs := p.block(n+2, 1, master)
	p.must(p.play(0, 1, logs...))
	p.caughtUp()
	if p.ended[order] || p.readMs != 0 {
		t.Error("half of a block was believed")
	}
	p.must(p.play(1, 1, txs...))
	if !p.ended[order] {
		t.Error("the order was executed, and nobody is told")
	}
	if p.readMs != 0 {
		t.Error("it was told before the past of all partitions was read")
	}
	p.caughtUp()
	p.must(p.play(0, 1, wire.BlockEnd{Block: blockAt(n + 3)}))
	if got := p.readMs; got != blockAt(n+2).TimeMs {
		t.Errorf("read up to %d, and one partition stands at %d", got, blockAt(n+2).TimeMs)
	}
}

// A reading that begins inside a block leaves the rest of that block out.
func TestReaderLeavesOut(t *testing.T) {
	const n = 10
	p := newTape(t, 17)
	logs, txs := p.block(n+1, 1, master)
	p.must(p.play(1, 5, txs[1:]...))
	p.must(p.play(0, 5, logs...))
	if p.ended[order] {
		t.Error("a block was believed whose beginning was not read")
	}
	logs, txs = p.block(n+2, 1, master)
	p.must(p.play(0, 5, logs...))
	p.must(p.play(1, 5, txs...))
	if !p.ended[order] {
		t.Error("a whole block was not believed")
	}
}

// What does not stand under the claim in force is left out: of a scanner that was replaced, and of one that never
// claimed this partition. What does is read on. A reading that began behind the claim says that it cannot tell.
func TestReaderGoesByClaims(t *testing.T) {
	const n = 10
	for _, stray := range []uint64{4, 9} {
		p := newTape(t, 0)
		for partition := range 2 {
			p.must(p.play(partition, 5, wire.Epoch{Number: 5, Owner: "the right scanner"}))
		}
		p.caughtUp()
		p.caughtUp()
		logs, txs := p.block(n, 1, master)
		p.must(errors.Join(p.play(0, stray, logs...), p.play(1, stray, txs...)))
		if p.ended[order] {
			t.Errorf("epoch %d was believed, and 5 is the one that was claimed", stray)
		}
		p.must(errors.Join(p.play(0, 5, logs...), p.play(1, 5, txs...)))
		if !p.ended[order] || p.readMs != blockAt(n).TimeMs {
			t.Errorf("after a record of epoch %d the evidence stands still", stray)
		}
		p = newTape(t, 17)
		p.must(p.play(0, 5, logs...))
		if err := p.play(0, stray, logs...); !errors.Is(err, errAmbiguousEpoch) {
			t.Errorf("epoch %d after 5, and no claim: %v", stray, err)
		}
	}
}

// A block that came in several batches is believed at its end; parts that were left without one are void once another
// scanner begins.
func TestReaderJoinsParts(t *testing.T) {
	const n = 10
	p := newTape(t, 0)
	logs, txs := p.block(n+1, 1, master)
	p.must(p.play(1, 1, txs...))
	p.must(p.play(0, 1, logs[0], wire.Part{Block: blockAt(n + 1), Records: 1}))
	p.must(p.play(0, 2, wire.Epoch{Number: 2, Owner: "the next"}, wire.BlockEnd{Block: blockAt(n + 1)}))
	p.must(p.play(1, 2, wire.Epoch{Number: 2, Owner: "the next"}))
	if p.ended[order] {
		t.Error("parts without their end were believed")
	}
	logs, txs = p.block(n+2, 1, master)
	p.must(p.play(1, 2, txs...))
	p.must(p.play(0, 2, logs[0], wire.Part{Block: blockAt(n + 2), Records: 1}, logs[1]))
	if !p.ended[order] {
		t.Error("a block of two batches was not believed")
	}
}

// A block that leaves the chain before all partitions had it shows nothing.
func TestReaderUndoes(t *testing.T) {
	const n = 10
	p := newTape(t, 0)
	logs, txs := p.block(n+1, 1, master)
	p.must(p.play(0, 1, wire.BlockEnd{Block: blockAt(n)}))
	p.must(p.play(0, 1, logs...))
	p.must(p.play(0, 1, wire.Reorg{Reorg: chain.Reorg{Ancestor: blockAt(n), OldTip: blockAt(n + 1)}}))
	p.must(p.play(1, 1, wire.BlockEnd{Block: blockAt(n)}))
	p.must(p.play(1, 1, txs...))
	if p.ended[order] {
		t.Error("the execution was on a branch that is gone")
	}
}

// A consumer that meets something it does not understand stops and says so.
func TestReaderRefuses(t *testing.T) {
	p := newTape(t, 0)
	if err := p.logRecord(bus.Record{Value: []byte("?")}); err == nil {
		t.Error("a record of no kind was taken")
	}
	if err := p.readJob(bus.Record{Value: []byte("?")}); err == nil {
		t.Error("a job of no kind was taken")
	}
	r, err := wire.Encode([]byte("key"), wire.BlockEnd{Block: blockAt(1)}, 1, 0)
	p.must(err)
	if err := p.readJob(r); err == nil || !strings.Contains(err.Error(), "BlockEnd") {
		t.Errorf("a block among jobs: %v", err)
	}
	const n = 10
	logs, txs := p.block(n, 1, master)
	p.must(p.play(0, 1, logs...))
	if err := p.play(1, 1, txs[1:]...); err == nil || !strings.Contains(err.Error(), "has the record of transaction") {
		t.Errorf("an execution without its transaction: %v", err)
	}
}

// A log that cannot be decoded, or whose transaction is missing, ends the reading, in a block and in a range.
func TestSenselessRecordsEndTheReading(t *testing.T) {
	const n = 10
	at := blockAt(n)
	logs, txs := newTape(t, 0).block(n, 1, master)
	log, tx, garbled := logs[0], txs[0], wire.Log{Log: chain.Log{Block: n, BlockHash: at.Hash}}
	for name, wrong := range map[string][2][]wire.Message{
		"a transaction is missing": {{log}, {}},
		"a log is garbled":         {{garbled}, {tx}},
	} {
		for what, end := range map[string]wire.Message{"a block": wire.BlockEnd{Block: at},
			"a range": wire.RangeEnd{Before: blockAt(n - 2), Last: blockAt(n + 2), Blocks: []chain.BlockRef{at}}} {
			p := newTape(t, 0)
			var err error
			for partition, records := range wrong {
				err = errors.Join(err, p.play(partition, 1, append(slices.Clone(records), end)...))
			}
			if err == nil || len(p.ended) > 0 {
				t.Errorf("%s in %s: told of %v", name, what, p.ended)
			}
		}
	}
}
