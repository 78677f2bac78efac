package scanner

import (
	"context"
	"errors"
	"testing"
	"time"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// drop deletes the log topic, as a broker does that has lost its disk.
func (k *kafka) drop(t *testing.T) {
	t.Helper()
	if err := k.DeleteTopic(wire.LogTopic(evmnode.DefaultChainID)); err != nil {
		t.Fatal(err)
	}
	k.auditors = nil
}

// A log topic that is deleted and made anew beneath a running scanner is claimed anew, and holds the chain from its
// beginning: readers see the claim before the first block that counts. The next scanner goes on with it. Brokers may
// take what the producer of before writes on, or refuse it.
func TestTopicMadeAnewBeneathTheScanner(t *testing.T) {
	for name, taken := range map[string]bool{"taken": true, "refused": false} {
		for pause, missing := range map[string]bool{"at once": false, "after a while": true} {
			t.Run(name+", "+pause, func(t *testing.T) {
				d, k := startDevnet(t), startBroker(t, broker.Config{AnySequence: taken})
				tr := newTruth(d)
				s := start(t, testConfig(d, k.Addr()), k)
				d.trade(1)
				settle(t, k, tr)

				k.drop(t)
				if missing {
					d.mine(1)
					eventually(t, "the scanner says that the topic is missing", func() error {
						if err := k.client.Health(); err == nil {
							return errNotYet
						}
						return nil
					})
				}
				k.ensure(t, partitions)
				d.trade(2)
				for p, a := range settle(t, k, tr) {
					if a.epochs[len(a.epochs)-1] < 2 {
						t.Errorf("partition %d: epochs %v; the next one has to outrank the first", p, a.epochs)
					}
				}
				if err := s.stop(); !errors.Is(err, context.Canceled) {
					t.Errorf("the scanner ended with %v", err)
				}

				s = start(t, testConfig(d, k.Addr()), k)
				d.trade(3)
				settle(t, k, tr)
				if err := s.stop(); !errors.Is(err, context.Canceled) {
					t.Errorf("the next scanner ended with %v", err)
				}
			})
		}
	}
}

// A scanner that has nothing to write notices as well, by its reading, be the new topic shorter or longer than the one
// before.
func TestTopicMadeAnewWhileNothingIsWritten(t *testing.T) {
	for name, longer := range map[string]bool{"shorter": false, "longer": true} {
		t.Run(name, func(t *testing.T) {
			d, k := startDevnet(t), startBroker(t, broker.Config{AnySequence: true})
			tr, door, topic := newTruth(d), &gate{}, wire.LogTopic(evmnode.DefaultChainID)
			s := start(t, testConfig(d, k.Addr()), k, door.on)
			d.trade(1)
			settle(t, k, tr)
			_, end, err := k.client.Bounds(t.Context(), topic, 0)
			if err != nil {
				t.Fatal(err)
			}
			door.close()
			k.drop(t)
			eventually(t, "its reading fails", func() error {
				if k.client.Health() == nil {
					return errNotYet
				}
				return nil
			})
			k.ensure(t, partitions)
			if longer {
				if _, err := k.client.Producer(topic).Produce(t.Context(), 0, blocksOf(t, 1, int(end)+9)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(3 * time.Second) // what comes to the door meanwhile would tell it too
			door.open()
			settle(t, k, tr)
			if err := s.stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("the scanner ended with %v", err)
			}
		})
	}
}

// Who stands by at a topic that is made anew goes on standing by, and takes the new one over when its owner is gone.
func TestTopicMadeAnewBesideAStandBy(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	cfg := testConfig(d, k.Addr())
	cfg.Scanner.TakeoverAfter = 20 * time.Second // far longer than a claim needs
	older := start(t, cfg, k)
	d.trade(1)
	settle(t, k, tr)
	newer := start(t, cfg, k)
	eventually(t, "the older scanner stands by", func() error {
		if !standing(older) {
			return errNotYet
		}
		return nil
	})
	k.drop(t)
	k.ensure(t, partitions)
	d.trade(2)
	settle(t, k, tr)
	if !standing(older) || standing(newer) {
		t.Errorf("standing by: older %t, newer %t", standing(older), standing(newer))
	}
	_ = newer.stop()
	d.trade(3)
	settle(t, k, tr) // the older one again
	if err := older.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the older scanner ended with %v", err)
	}
}

// What stands before the first claim of a topic counts for nothing, however much it is, and also for who comes after a
// scanner that has claimed the topic and done nothing else: the topic was made anew beneath another one. Claims outrank
// it.
func TestTopicWithoutAClaim(t *testing.T) {
	const before = uint64(7) // the epoch of the scanner that wrote it
	for name, c := range map[string]struct {
		count  int
		claims uint64 // that stand behind it
	}{
		"a record":                    {1, 0},
		"more than is read of a tail": {firstWindow + 1, 0},
		"more, and a claim":           {firstWindow + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, k := startDevnet(t), startKafka(t)
			tr := newTruth(d)
			d.trade(1)
			onItsWay := blocksOf(t, before, c.count)
			writer := k.client.Producer(wire.LogTopic(evmnode.DefaultChainID))
			for p := range partitions {
				if _, err := writer.Produce(t.Context(), p, onItsWay); err != nil {
					t.Fatal(err)
				}
				for n := range c.claims {
					claim, err := wire.Encode(nil, wire.Epoch{Number: before + 1 + n}, before+1+n, filterVersion)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := writer.Produce(t.Context(), p, []wire.Record{claim}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for want := before + 1 + c.claims; want < before+3+c.claims; want++ {
				s := start(t, testConfig(d, k.Addr()), k)
				d.trade(byte(want))
				for p, a := range settle(t, k, tr) {
					if last := a.epochs[len(a.epochs)-1]; last != want || a.unclaimed != c.count {
						t.Errorf("partition %d: epoch %d behind %d records without a claim", p, last, a.unclaimed)
					}
				}
				if err := s.stop(); !errors.Is(err, context.Canceled) {
					t.Errorf("the scanner ended with %v", err)
				}
			}
		})
	}
}

// blocksOf are the ends of blocks that follow each other, under an epoch.
func blocksOf(t *testing.T, epoch uint64, count int) (records []wire.Record) {
	t.Helper()
	last := chain.BlockRef{Number: 2, Hash: chain.Hash{2}}
	for range count {
		number := last.Number + 1
		last = chain.BlockRef{Number: number, Hash: chain.Hash{byte(number), byte(number >> 8)}, Parent: last.Hash}
		end, err := wire.Encode(nil, wire.BlockEnd{Block: last, Digest: wire.Digest(nil)}, epoch, filterVersion)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, end)
	}
	return records
}
