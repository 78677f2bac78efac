package scanner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/test/rig"
)

// Cut for any size of batch, a block's records stay what and where they are, and every batch but the last says how many
// there are up to it.
func TestSplit(t *testing.T) {
	encode := func(key chain.Hash, m wire.Message) (wire.Record, error) {
		return wire.Encode(key[:], m, 1, filterVersion)
	}
	block := ref(100, 0, ref(99, 0, chain.BlockRef{}))
	rapid.Check(t, func(t *rapid.T) {
		c := content{block: block}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 3000), 0, 40).Draw(t, "sizes") {
			c.logs = append(c.logs, routedLog{chain.Log{Data: make([]byte, n), Topics: make([]chain.Hash, 2),
				Index: uint32(len(c.logs))}, chain.Hash{}})
		}
		whole, err := c.batches([]uint32{0}, encode)
		if err != nil {
			t.Fatal(err)
		}
		most := rapid.IntRange(500, 20_000).Draw(t, "most")
		parts, err := split(whole[0], block, most, encode)
		if large, is := errors.AsType[*tooLargeError](err); is {
			if _, less := split(whole[0], block, large.bytes-1, encode); large.bytes <= most || less == nil {
				t.Fatalf("it asks for more than is needed: %v", err)
			}
			if _, err := split(whole[0], block, large.bytes, encode); err != nil {
				t.Fatalf("what it asks for is not enough: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var together []wire.Record
		for i, part := range parts {
			if size(part) > most {
				t.Fatalf("a batch of %d bytes, %d may be", size(part), most)
			}
			if i == len(parts)-1 {
				together = append(together, part...)
				break
			}
			m, _, err := wire.Decode(part[len(part)-1])
			together = append(together, part[:len(part)-1]...)
			if end, is := m.(wire.Part); err != nil || !is || end.Block != block || int(end.Records) != len(together) ||
				len(part) < 2 {
				t.Fatalf("%d records, and the batch ends with %+v, %v", len(together), m, err)
			}
		}
		if wire.Digest(together) != wire.Digest(whole[0]) {
			t.Fatal("the parts hold other records")
		}
	})
}

// largeBlock mines one block whose records for each partition are larger than the smallest batch that can be
// configured.
func largeBlock(d *devnet) {
	for p := range partitions {
		account := byte(0)
		for wire.Partition(accountOf(account).Hash(), partitions) != p {
			account++
		}
		var logs []chain.Log
		for i := range byte(14) {
			logs = append(logs, gmxtest.Event(emitter, "OrderCreated",
				perp.Fields{"key": order(i), "account": accountOf(account)}))
		}
		d.emit(p, logs...)
	}
	d.mine(1)
}

func smallBatches(d *devnet, k *kafka, t *testing.T) Config {
	t.Helper()
	cfg := testConfig(d, k.Addr())
	cfg.Kafka.MaxBytes = 16 << 10
	k.client = rig.Kafka(t, cfg.Kafka)
	return cfg
}

// A block that does not fit into a batch goes out in several, counted and digested as one (PIPE-2).
func TestBlockLargerThanABatch(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	d.mine(1)
	s := start(t, smallBatches(d, k, t), k)
	settle(t, k, tr)
	largeBlock(d)
	d.trade(1)
	parts := 0
	for _, a := range settle(t, k, tr) {
		parts += a.parts
		if len(a.epochs) != 1 {
			t.Errorf("epochs %v", a.epochs)
		}
	}
	if parts < 2 {
		t.Errorf("%d batches were not the last of their block: the test shows nothing", parts)
	}
	_ = s.stop()
	start(t, smallBatches(d, k, t), k) // reads what stands there
	d.trade(2)
	settle(t, k, tr)
}

// Killed between the batches of a block, the next scanner publishes it whole, and what the first has left counts for
// nothing.
func TestKilledInTheMiddleOfABlock(t *testing.T) {
	for p := range partitions {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("partition %d %t", p, after), func(t *testing.T) {
				d, k := startDevnet(t), startKafka(t)
				tr := newTruth(d)
				d.mine(1)
				cfg := smallBatches(d, k, t)
				largeBlock(d)
				trip := &tripwire{label: fmt.Sprintf("part 2/%d", p), after: after}
				if err := start(t, cfg, k, trip.on).wait(); !errors.Is(err, errKilled) {
					t.Fatalf("the scanner ended with %v", err)
				}
				start(t, cfg, k)
				d.trade(1)
				settle(t, k, tr)
			})
		}
	}
}

// A record that no batch can hold is said once, with what to do, and costs no epoch, however long it lasts.
func TestRecordThatNoBatchHolds(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	d.mine(1)
	cfg := smallBatches(d, k, t)
	cfg.Scanner.TakeoverAfter = 200 * time.Millisecond
	s := start(t, cfg, k)
	settle(t, k, tr)
	d.emit(0, gmxtest.Event(emitter, "OrderCreated", perp.Fields{"key": order(1), "account": accountOf(1),
		"dataList": strings.Repeat("x", 20_000)}))
	d.mine(1)
	eventually(t, "readiness says what to do", func() error {
		if err := s.status.following(); err == nil || !strings.Contains(err.Error(), "kafka.max_bytes") {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
	other := start(t, cfg, k) // as a second scanner, or a restart
	eventually(t, "the other one says so too, and the first leaves the topic to it", func() error {
		if err := other.status.following(); err == nil || !strings.Contains(err.Error(), "kafka.max_bytes") ||
			!standing(s) {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
	time.Sleep(5 * cfg.Scanner.TakeoverAfter)
	for p, a := range audits(t, k) {
		if len(a.epochs) != 2 {
			t.Errorf("partition %d: epochs %v", p, a.epochs)
		}
	}
	select {
	case <-other.ended:
		t.Errorf("it ended: %v", other.err)
	default:
	}
}
