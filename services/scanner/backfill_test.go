package scanner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/kafka/wire"
)

// old makes a chain with history: logs here and there among empty blocks. KEEPER_LONG=1 makes it twice as long.
func old(t *testing.T) *devnet {
	t.Helper()
	d := startDevnet(t)
	stretches := byte(3)
	if os.Getenv("KEEPER_LONG") != "" {
		stretches = 6
	}
	for i := range stretches {
		d.trade(i)
		d.mine(30)
	}
	return d
}

// inRanges makes a scanner publish all but little history in small ranges.
func inRanges(cfg Config) Config {
	cfg.Scanner.Backfill = Backfill{Workers: 4, MaxRange: 16}
	return cfg
}

// ranged checks that what was final when the scanner began was published in ranges, and goes on with blocks.
func ranged(t *testing.T, all []audited, final uint64) {
	t.Helper()
	for p, a := range all {
		if len(a.ranges) == 0 || a.ranges[0].Before.Number != 0 {
			t.Fatalf("partition %d: ranges %+v", p, a.ranges)
		}
		if last := a.ranges[len(a.ranges)-1].Last.Number; last < final ||
			last == a.blocks[len(a.blocks)-1].end.Block.Number {
			t.Errorf("partition %d: ranges up to %d, final was %d, the tip is %+v", p, last, final,
				a.blocks[len(a.blocks)-1].end.Block)
		}
		if len(a.blocks[0].params) != 1 || a.blocks[0].params[0].Value[31] != 42 {
			t.Errorf("partition %d: PARAMs of the first block: %+v", p, a.blocks[0].params)
		}
	}
}

// History goes out in ranges, the rest block by block, and nothing is missing or twice where the two meet (PIPE-2).
func TestBackfill(t *testing.T) {
	for _, p := range []int{1, 4} {
		t.Run(fmt.Sprintf("P=%d", p), func(t *testing.T) {
			withPartitions(t, p)
			d, k := old(t), startKafka(t)
			tr := newTruth(d)
			final := d.Head().Number.Uint64() - 2
			start(t, inRanges(testConfig(d, k.Addr())), k)
			ranged(t, settle(t, k, tr), final)
			d.trade(50)
			settle(t, k, tr)
		})
	}
}

// Killed at any range, in any partition, the next scanner cuts its ranges where the partitions stand.
func TestKilledInTheMiddleOfHistory(t *testing.T) {
	for _, p := range []int{1, 4} {
		t.Run(fmt.Sprintf("P=%d", p), func(t *testing.T) {
			withPartitions(t, p)
			for i := range p {
				for _, number := range []int{16, 48} {
					for _, after := range []bool{false, true} {
						label := fmt.Sprintf("range %d/%d", number, i)
						t.Run(fmt.Sprintf("%s %t", label, after), func(t *testing.T) {
							t.Parallel()
							d, k := old(t), startKafka(t)
							tr := newTruth(d)
							cfg := inRanges(testConfig(d, k.Addr()))
							final := d.Head().Number.Uint64() - 2
							wire := &tripwire{label: label, after: after}
							if err := start(t, cfg, k, wire.on).wait(); !errors.Is(err, errKilled) {
								t.Fatalf("the scanner ended with %v", err)
							}
							cfg.Scanner.Backfill.MaxRange = 13 // other borders than before
							start(t, cfg, k)
							ranged(t, settle(t, k, tr), final)
						})
					}
				}
			}
		})
	}
}

// A scanner that stands by takes over from one that dies in the middle of history.
func TestTakeoverInTheMiddleOfHistory(t *testing.T) {
	d, k := old(t), startKafka(t)
	tr := newTruth(d)
	cfg := inRanges(testConfig(d, k.Addr()))
	cfg.Scanner.TakeoverAfter = 300 * time.Millisecond
	door := &gate{}
	door.close()
	older := start(t, cfg, k, func(s *Scanner) { // it stops at its second range, and is not heard of again
		door.on(s)
		s.newProducer = afterRange(s.newProducer,
			func(topic string) producer { return gated{door, k.client.Producer(topic)} }, k)
	})
	eventually(t, "the older scanner is in the middle of history", func() error {
		if door.waiting() == 0 {
			return errNotYet
		}
		return nil
	})
	newer := start(t, cfg, k)
	settle(t, k, tr)
	if newer.status.report().Epoch < 2 {
		t.Error("the newer scanner has claimed no epoch of its own")
	}
	door.open()
	eventually(t, "the older scanner stands by", func() error {
		if !standing(older) {
			return errNotYet
		}
		return nil
	})
	settle(t, k, tr)
}

// afterRange writes with the real producer up to the first range, and with another one from then on.
func afterRange(_, later func(string) producer, k *kafka) func(string) producer {
	return func(topic string) producer { return &switching{now: k.client.Producer(topic), later: later(topic)} }
}

type switching struct {
	now   producer
	later producer
}

func (p *switching) Produce(ctx context.Context, partition int, records []wire.Record) (int64, error) {
	if strings.HasPrefix(labelOf(partition, records), "range ") &&
		!strings.HasPrefix(labelOf(partition, records), "range 16/") {
		return p.later.Produce(ctx, partition, records)
	}
	return p.now.Produce(ctx, partition, records)
}

// What a node hides of history holds the scanner up until it is there (PIPE-13).
func TestLiesAboutHistory(t *testing.T) {
	brokenLink := func(_ []json.RawMessage, honest json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.Replace(string(honest), `"parentHash":"0x`, `"parentHash":"0xf`, 1))
	}
	for name, told := range map[string]struct {
		method string
		lie    lie
	}{
		"receipts are refused":           {getReceipts, refuses},
		"receipts are pruned":            {getReceipts, pruned},
		"a log is left out of a receipt": {getReceipts, leavesOutOfReceipts},
		"receipts are left out":          {getReceipts, leavesOut(1)},
		"headers do not fit":             {"eth_getBlockByNumber", brokenLink},
	} {
		t.Run(name, func(t *testing.T) {
			d, k := old(t), startKafka(t)
			tr := newTruth(d)
			final := d.Head().Number.Uint64() - 2
			node := startLiar(t, d)
			cfg := inRanges(through(testConfig(d, k.Addr()), node))
			s := start(t, cfg, k, func(*Scanner) { node.tell(told.method, told.lie) })
			eventually(t, "the node has lied", func() error {
				if lied, _ := node.count(told.method); lied < 3 || s.status.following() == nil {
					return errNotYet
				}
				return nil
			})
			node.tell(told.method, nil)
			ranged(t, proven(t, k, tr), final)
		})
	}
}

// A batch never gets larger than the broker takes: ranges are cut by their bytes too, into parts.
func TestRangesFitIntoBatches(t *testing.T) {
	withPartitions(t, 2)
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	for i := range byte(12) {
		d.emit(0, orderCreated(i), marketUpdated(i), parameterSet(i), orderExecuted(i), marketUpdated(i+1))
		d.mine(1)
	}
	d.mine(6)
	cfg := inRanges(testConfig(d, k.Addr()))
	cfg.Kafka.MaxBytes = 16 << 10
	largest := &measured{}
	start(t, cfg, k, largest.on)
	all := settle(t, k, tr)
	if len(all[0].ranges) == 0 || all[0].parts == 0 {
		t.Errorf("%d ranges in %d parts", len(all[0].ranges), all[0].parts)
	}
	if largest.bytes > 16<<10 || largest.bytes < 4<<10 {
		t.Errorf("the largest batch has %d bytes", largest.bytes)
	}
}

// A chain that is reorganised while history is being published does not disturb it.
func TestReorgDuringBackfill(t *testing.T) {
	d, k := old(t), startKafka(t)
	tr := newTruth(d)
	cfg := inRanges(testConfig(d, k.Addr()))
	wire := &tripwire{label: "range 64/0", after: true}
	if err := start(t, cfg, k, wire.on).wait(); !errors.Is(err, errKilled) {
		t.Fatalf("the scanner ended with %v", err)
	}
	d.reorg(2, evmnode.Replay)
	d.mine(30)
	s := start(t, cfg, k)
	d.reorg(2, evmnode.Drop)
	settle(t, k, tr)
	if n := testutil.ToFloat64(s.metrics.backfillLeft); n != 0 {
		t.Errorf("%v blocks of history are left", n)
	}
}

// measured notes the size of the largest batch.
type measured struct{ bytes int }

func (m *measured) on(s *Scanner) {
	next := s.newProducer
	s.newProducer = func(topic string) producer { return measuring{m, next(topic)} }
}

type measuring struct {
	*measured
	producer
}

var measuringMu = make(chan struct{}, 1)

func (p measuring) Produce(ctx context.Context, partition int, records []wire.Record) (int64, error) {
	measuringMu <- struct{}{}
	p.bytes = max(p.bytes, size(records))
	<-measuringMu
	return p.producer.Produce(ctx, partition, records)
}
