package evidence

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/wire"
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
		wire.BlockEnd{Block: at, Records: 1, Verified: true},
	}
	txs = []wire.Message{wire.Tx{Tx: chain.Tx{Hash: tx, From: sender, Block: n, BlockHash: at.Hash, OK: true}},
		wire.BlockEnd{Block: at, Records: 1, Verified: true}}
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

// A reading that begins inside a block leaves the rest of that block out, and what a scanner that was replaced has
// written too.
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
	p.must(p.play(0, 4, logs...))
	p.must(p.play(1, 4, txs...))
	if p.ended[order] {
		t.Error("a scanner of a former epoch was believed")
	}
	p.must(p.play(0, 5, logs...))
	p.must(p.play(1, 5, txs...))
	if !p.ended[order] {
		t.Error("a whole block was not believed")
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

// One endpoint's wrong logs, of a block that nobody has proven, end no reading: neither an execution whose transaction
// is missing, nor what cannot be decoded. The correction shows what was executed. Proven, they are not understood.
func TestUnprovenBlockEndsNoReading(t *testing.T) {
	const n = 10
	at := blockAt(n)
	logs, txs := newTape(t, 0).block(n, 1, master)
	log, tx, garbled := logs[0], txs[0], wire.Log{Log: chain.Log{Block: n, BlockHash: at.Hash}}
	for name, wrong := range map[string][2][]wire.Message{
		"a transaction is missing": {{log}, {}},
		"a log is garbled":         {{garbled}, {tx}},
	} {
		for _, verified := range []bool{false, true} {
			p := newTape(t, 0)
			say := func(attempt uint32, verified bool, content [2][]wire.Message) (err error) {
				end := wire.BlockEnd{Block: at, Attempt: attempt, Verified: verified}
				for partition, records := range content {
					err = errors.Join(err, p.play(partition, 1, append(slices.Clone(records), end)...))
				}
				return err
			}
			err := say(0, verified, wrong)
			if (err != nil) != verified || p.ended[order] {
				t.Errorf("%s, proven %t: %v, told %t", name, verified, err, p.ended[order])
			}
			if verified {
				continue
			}
			back := wire.Correction{Reorg: chain.Reorg{Ancestor: blockAt(n - 1), OldTip: at}, Attempt: 1}
			p.must(errors.Join(p.play(0, 1, back), p.play(1, 1, back)))
			p.must(say(1, true, [2][]wire.Message{{log}, {tx}}))
			if !p.ended[order] {
				t.Errorf("%s: the correction shows nothing", name)
			}
		}
	}
}

// History that an endpoint has told wrong, in a range that nobody has proven, ends no reading either: it is never taken
// back, and every reading would end there for as long as the evidence goes back. What follows it is told.
func TestUnprovenRangeEndsNoReading(t *testing.T) {
	const n = 10
	at := blockAt(n)
	logs, txs := newTape(t, 0).block(n, 1, master)
	log, tx, garbled := logs[0], txs[0], wire.Log{Log: chain.Log{Block: n, BlockHash: at.Hash}}
	for name, wrong := range map[string][2][]wire.Message{
		"a transaction is missing": {{log}, {}},
		"a log is garbled":         {{garbled}, {tx}},
	} {
		for _, verified := range []bool{false, true} {
			p := newTape(t, 0)
			var err error
			for partition, records := range wrong {
				end := wire.RangeEnd{Before: blockAt(n - 2), Last: blockAt(n + 2), Records: uint32(len(records)),
					Verified: verified}
				if len(records) > 0 {
					end.Blocks = []chain.BlockRef{at}
				}
				err = errors.Join(err, p.play(partition, 1, append(slices.Clone(records), end)...))
			}
			if (err != nil) != verified || len(p.ended) > 0 {
				t.Errorf("%s, proven %t: %v, told of %v", name, verified, err, p.ended)
			}
			if verified {
				continue
			}
			p.executes(blockAt(n+3), 2)
			p.told(2)
		}
	}
}
