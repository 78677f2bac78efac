package scanner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/wire"
)

// published waits until the scanner has published up to the chain's head, rightly or not.
func published(t *testing.T, s *running, d *devnet) {
	t.Helper()
	eventually(t, "the scanner has published", func() error {
		if testutil.ToFloat64(s.metrics.block) < float64(d.Head().Number.Uint64()) {
			return errNotYet
		}
		return nil
	})
}

// proven waits until the topic holds the chain and nothing on it is in doubt, and checks that nothing was ever called
// verified that was wrong.
func proven(t *testing.T, k *kafka, tr *truth, s *running) (all []audited) {
	t.Helper()
	eventually(t, "the topic holds the chain, and everything on it is proven", func() (err error) {
		n := testutil.ToFloat64(s.metrics.unproven) // before the topic is read: what proves a block is written first
		all, err = compare(t.Context(), k, tr, 1)
		if wrong, is := errors.AsType[*wrongError](err); is {
			t.Fatal(wrong)
		}
		if n > 0 {
			return fmt.Errorf("%w: %v blocks: %w", errNotYet, n, err)
		}
		return err
	})
	if err := lastWord(t.Context(), tr, all); err != nil {
		t.Error(err)
	}
	return all
}

// lies of one node, by method.
type lies map[string]lie

func (l *liar) tellAll(all lies) {
	for method, f := range all {
		l.tell(method, f)
	}
}

func (l *liar) repent(all lies) {
	for method := range all {
		l.tell(method, nil)
	}
}

const (
	getLogs     = "eth_getLogs"
	getReceipts = "eth_getBlockReceipts"
)

// What a lying node made the scanner publish is corrected once a proof can be had, and was never called verified
// (PIPE-2).
func TestLiesAreCorrected(t *testing.T) {
	for name, told := range map[string]lies{
		"it leaves one log out":                           {getLogs: leavesOut(1), getReceipts: refuses},
		"it leaves all logs out":                          {getLogs: leavesOut(1000), getReceipts: refuses},
		"its history is pruned":                           {getLogs: pruned, getReceipts: pruned},
		"it leaves logs out, and receipts":                {getLogs: leavesOut(1), getReceipts: leavesOut(1)},
		"it leaves logs out, also of receipts":            {getLogs: leavesOut(1), getReceipts: leavesOutOfReceipts},
		"it refuses receipts by block, but is not lying":  {getReceipts: refuses},
		"it leaves logs out of receipts, but not of logs": {getReceipts: leavesOutOfReceipts},
	} {
		for _, p := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, P=%d", name, p), func(t *testing.T) {
				withPartitions(t, p)
				d, k := startDevnet(t), startKafka(t)
				tr := newTruth(d)
				node := startLiar(t, d)
				d.mine(1)
				s := start(t, through(testConfig(d, k.Addr()), node), k)
				settle(t, k, tr)
				node.tellAll(told)
				d.trade(1)
				published(t, s, d)
				if n := testutil.ToFloat64(s.metrics.unproven); n == 0 {
					t.Error("nothing is in doubt")
				}
				node.repent(told)
				all := proven(t, k, tr, s)
				_, hides := told[getLogs]
				for p, a := range all {
					if corrected := len(a.corrections) > 0; corrected != hides {
						t.Errorf("partition %d: %d corrections", p, len(a.corrections))
					}
					if said := len(a.proven) > 0; said == hides {
						t.Errorf("partition %d: %d blocks were said to be proven", p, len(a.proven))
					}
					for _, b := range a.blocks {
						if !b.ranged && !b.end.Verified {
							t.Errorf("partition %d: nothing says that block %d is proven", p, b.end.Block.Number)
						}
					}
				}
				d.trade(2)
				proven(t, k, tr, s)
			})
		}
	}
}

// A lie that shows in itself is not published at all.
func TestLiesAreNotPublished(t *testing.T) {
	told := lies{getLogs: ofAnotherFork, getReceipts: refuses}
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	d.mine(1)
	s := start(t, through(testConfig(d, k.Addr()), node), k)
	settle(t, k, tr)
	node.tellAll(told)
	d.trade(1)
	eventually(t, "the scanner says that it cannot go on", func() error {
		if lied, _ := node.count(getLogs); lied == 0 || s.status.following() == nil {
			return errNotYet
		}
		return nil
	})
	node.repent(told)
	for p, a := range proven(t, k, tr, s) {
		if len(a.corrections) > 0 {
			t.Errorf("partition %d: %d corrections", p, len(a.corrections))
		}
	}
}

// With an honest node beside the liar everything is published proven at once.
func TestHonestNodeBesideALiar(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	bad, good := startLiar(t, d), startLiar(t, d)
	bad.tellAll(lies{getLogs: leavesOut(1), getReceipts: leavesOutOfReceipts})
	s := start(t, through(testConfig(d, k.Addr()), bad, good), k)
	for i := range byte(4) {
		d.trade(i)
	}
	for p, a := range proven(t, k, tr, s) {
		for _, b := range a.seen {
			if !b.end.Verified {
				t.Errorf("partition %d: block %d is not verified", p, b.end.Block.Number)
			}
		}
	}
}

// What is in doubt when a scanner ends is proven by the next, from what stands on the topic.
func TestDoubtsOutliveARestart(t *testing.T) {
	told := lies{getLogs: leavesOut(1), getReceipts: refuses}
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	node.tellAll(told)
	s := start(t, through(testConfig(d, k.Addr()), node), k)
	d.trade(1)
	published(t, s, d)
	_ = s.stop()
	node.repent(told)
	s = start(t, through(testConfig(d, k.Addr()), node), k)
	d.trade(2)
	eventually(t, "a block is corrected", func() error {
		if testutil.ToFloat64(s.metrics.corrections) == 0 {
			return errNotYet
		}
		return nil
	})
	proven(t, k, tr, s)
}

// A correction goes below the finalized block, and everything above the block comes again under the same attempt in
// every partition.
func TestCorrectionBelowFinality(t *testing.T) {
	told := lies{getLogs: leavesOut(1), getReceipts: refuses}
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	node.tellAll(told)
	s := start(t, through(testConfig(d, k.Addr()), node), k)
	d.trade(1)
	d.mine(10)
	published(t, s, d)
	node.repent(told)
	for p, a := range proven(t, k, tr, s) {
		if len(a.corrections) == 0 {
			t.Fatalf("partition %d: no correction", p)
		}
		last := a.corrections[len(a.corrections)-1]
		for _, b := range a.blocks {
			if above := b.end.Block.Number > last.Ancestor.Number; above && b.end.Attempt != last.Attempt {
				t.Errorf("partition %d: block %d has attempt %d, the correction %d", p, b.end.Block.Number,
					b.end.Attempt, last.Attempt)
			}
		}
		if first := a.corrections[0]; a.finalized.Number <= first.Ancestor.Number {
			t.Errorf("partition %d: the first correction goes back to %d, finalized is %d", p, first.Ancestor.Number,
				a.finalized.Number)
		}
	}
}

// Killed at any step of a correction, the next scanner completes it in every partition.
func TestKilledWhileCorrecting(t *testing.T) {
	for _, p := range []int{1, 4} {
		var labels []string
		for i := range p {
			labels = append(labels, fmt.Sprintf("CORRECTION/%d", i), fmt.Sprintf("again 1/%d", i),
				fmt.Sprintf("again 2/%d", i))
		}
		t.Run(fmt.Sprintf("P=%d", p), func(t *testing.T) {
			withPartitions(t, p)
			for _, label := range labels {
				for _, after := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %t", label, after), func(t *testing.T) {
						t.Parallel()
						killCorrecting(t, label, after)
					})
				}
			}
		})
	}
}

func killCorrecting(t *testing.T, label string, after bool) {
	told := lies{getLogs: leavesOut(1), getReceipts: refuses}
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	node.tellAll(told)
	wire := &tripwire{label: label, after: after}
	s := start(t, through(testConfig(d, k.Addr()), node), k, wire.on)
	d.trade(1)
	published(t, s, d)
	node.repent(told)
	if err := s.wait(); !errors.Is(err, errKilled) {
		t.Fatalf("the scanner ended with %v", err)
	}
	s = start(t, through(testConfig(d, k.Addr()), node), k)
	d.trade(2)
	proven(t, k, tr, s)
}

// Logs that no build can route end the scanner only if they are proven: as one endpoint's word they are not published,
// and another one is asked (PIPE-2).
func TestInventedEventIsAskedElsewhere(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	bad, good := startLiar(t, d), startLiar(t, d)
	s := start(t, through(testConfig(d, k.Addr()), bad, good), k)
	d.mine(2)
	settle(t, k, tr)
	invented := gmxtest.Log(emitter, "PositionTeleported", nil, nil)
	garbles := func(_ []json.RawMessage, honest json.RawMessage) json.RawMessage {
		var logs []map[string]any
		if json.Unmarshal(honest, &logs) != nil || len(logs) == 0 {
			return nil
		}
		topics := make([]string, len(invented.Topics))
		for i, topic := range invented.Topics {
			topics[i] = hexutil.Encode(topic[:])
		}
		logs[len(logs)-1]["topics"], logs[len(logs)-1]["data"] = topics, hexutil.Encode(invented.Data)
		garbled, _ := json.Marshal(logs)
		return garbled
	}
	told := lies{getLogs: garbles, getReceipts: refuses}
	bad.tellAll(told)
	away := lies{getLogs: refuses, getReceipts: refuses}
	good.tellAll(away)
	d.trade(1)
	eventually(t, "the scanner says what it was told", func() error {
		if err := s.status.following(); err == nil || !strings.Contains(err.Error(), "PositionTeleported") {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
	good.tell(getLogs, nil)
	eventually(t, "the block is published, as the other endpoint has it", func() error {
		if err := s.status.following(); err != nil {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		if testutil.ToFloat64(s.metrics.block) < float64(d.Head().Number.Uint64()) {
			return errNotYet
		}
		return nil
	})
	bad.repent(told)
	good.repent(away)
	proven(t, k, tr, s)
	select {
	case <-s.ended:
		t.Errorf("the scanner has ended: %v", s.err)
	default:
	}
}

// Final blocks that nobody proves are not published as a range, which nothing could correct, while they lie within what
// readers can undo (PIPE-2).
func TestHistoryWithoutProofCanBeCorrected(t *testing.T) {
	told := lies{getLogs: leavesOut(1), getReceipts: refuses}
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	node.tellAll(told)
	d.trade(1)
	d.mine(20)
	cfg := through(testConfig(d, k.Addr()), node)
	cfg.Scanner.Backfill.MinBlocks = 4
	s := start(t, cfg, k)
	published(t, s, d)
	node.repent(told)
	d.trade(2)
	for p, a := range proven(t, k, tr, s) {
		if len(a.corrections) == 0 || len(a.ranges) > 0 {
			t.Errorf("partition %d: %d corrections, %d ranges", p, len(a.corrections), len(a.ranges))
		}
	}
}

// What a scanner published wrong before it ended can still be corrected by the next one, however much history has to be
// caught up with: nothing could take it back from below a range. The receipts may come at once, or only when the
// history stands on the topic.
func TestHistoryFollowsWhatIsProven(t *testing.T) {
	for name, late := range map[string]bool{"receipts at once": false, "receipts late": true} {
		t.Run(name, func(t *testing.T) {
			told := lies{getLogs: leavesOut(1), getReceipts: refuses}
			d, k := startDevnet(t), startKafka(t)
			tr := newTruth(d)
			node := startLiar(t, d)
			cfg := through(testConfig(d, k.Addr()), node)
			cfg.Scanner.Backfill.MinBlocks = 4
			d.mine(1)
			s := start(t, cfg, k)
			settle(t, k, tr)
			node.tellAll(told)
			d.trade(2)
			published(t, s, d)
			_ = s.stop()
			node.repent(told)
			d.mine(20)
			if late {
				node.tell(getReceipts, refuses)
			}
			s = start(t, cfg, k)
			published(t, s, d)
			node.tell(getReceipts, nil)
			d.mine(1)
			for p, a := range proven(t, k, tr, s) {
				if len(a.corrections) == 0 {
					t.Errorf("partition %d: no correction", p)
				}
			}
		})
	}
}

// A scanner that is killed when only some partitions hold an unproven block leaves nothing wrong behind: the next one
// compares what every partition says, however much history it has to catch up with (PIPE-2).
func TestKilledInsideAnUnprovenBlock(t *testing.T) {
	for p := range partitions {
		for _, ranges := range []bool{false, true} {
			t.Run(fmt.Sprintf("partition %d lacks it, ranges %t", p, ranges), func(t *testing.T) {
				t.Parallel()
				killInsideUnproven(t, fmt.Sprintf("block 2/%d", p), ranges)
			})
		}
	}
}

func killInsideUnproven(t *testing.T, label string, ranges bool) {
	told := lies{getLogs: leavesOut(1), getReceipts: refuses}
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	cfg := through(testConfig(d, k.Addr()), node)
	d.mine(1)
	first := start(t, cfg, k)
	settle(t, k, tr)
	_ = first.stop()
	node.tellAll(told)
	d.trade(2) // block 2 loses a log that belongs into every partition
	one := &without{label: label}
	if err := start(t, cfg, k, one.on).wait(); !errors.Is(err, errKilled) {
		t.Fatalf("the scanner ended with %v", err)
	}
	node.repent(told)
	d.mine(20)
	if ranges {
		cfg.Scanner.Backfill.MinBlocks = 4
	}
	s := start(t, cfg, k)
	published(t, s, d)
	for p, a := range proven(t, k, tr, s) {
		if len(a.corrections) == 0 {
			t.Errorf("partition %d: no correction", p)
		}
	}
}

// without kills a scanner at a batch that is not written, when those of the other partitions are.
type without struct {
	label string
	next  func(topic string) producer
}

// on is a scanner's option.
func (w *without) on(s *Scanner) {
	w.next = s.newProducer
	s.newProducer = func(topic string) producer { return lacking{w, w.next(topic)} }
}

type lacking struct {
	*without
	producer
}

func (p lacking) Produce(ctx context.Context, partition int, records []wire.Record) (int64, error) {
	if labelOf(partition, records) == p.label {
		return 0, errKilled
	}
	return p.producer.Produce(ctx, partition, records)
}

// A block whose receipts nobody has keeps no other one from being proven.
func TestUnprovableBlockHoldsNothingUp(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	d.mine(1)
	s := start(t, through(testConfig(d, k.Addr()), node), k)
	settle(t, k, tr)
	var lost string // the first block that is asked about
	node.tell(getReceipts, func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		if lost == "" {
			lost = string(params[0])
		}
		return notThere
	})
	d.trade(1)
	d.trade(1)
	published(t, s, d)
	if n := testutil.ToFloat64(s.metrics.unproven); n < 2 {
		t.Fatalf("%v unproven blocks", n)
	}
	node.tell(getReceipts, func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		if string(params[0]) == lost {
			return notThere
		}
		return nil
	})
	eventually(t, "every other block is proven", func() error {
		if n := testutil.ToFloat64(s.metrics.unproven); n != 1 {
			return fmt.Errorf("%w: %v blocks", errNotYet, n)
		}
		return nil
	})
	node.tell(getReceipts, nil)
	proven(t, k, tr, s)
}

// notThere is what a node answers that has no receipts of a block, at least for now.
var notThere = json.RawMessage(`{"code":-32000,"message":"the receipts of this block are not there"}`)
