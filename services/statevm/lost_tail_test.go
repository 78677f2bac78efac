package statevm

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/test/rig"
)

// record keeps every batch that an exchange writes, by partition.
func (x *exchange) record() (written [][][]bus.Record) {
	written = make([][][]bus.Record, x.partitions)
	write := x.write
	x.write = func(p int, records []bus.Record) {
		written[p] = append(written[p], slices.Clone(records))
		write(p, records)
	}
	return written
}

// cut gives an exchange another topic, which holds what the one before held, but for the last batches of each
// partition.
func (s *site) cut(t failer, x *exchange, written [][][]bus.Record, lost func(partition int) int) (topic string,
	gone [][][]bus.Record) {
	t.Helper()
	topic = s.ensure(t, s.client, s.chain.Add(1), x.partitions)
	write := toTopic(t, s.client.Producer(topic))
	gone = make([][][]bus.Record, x.partitions)
	for p := range written {
		kept := len(written[p]) - lost(p)
		gone[p] = slices.Clone(written[p][kept:])
		written[p] = written[p][:kept]
		for _, records := range written[p] {
			write(p, records)
		}
	}
	x.write = func(p int, records []bus.Record) {
		written[p] = append(written[p], slices.Clone(records))
		write(p, records)
	}
	return topic, gone
}

// ensure creates the log topic of a chain, and claims it: nothing counts before.
func (s *site) ensure(t failer, client *bus.Client, id uint64, partitions int) (topic string) {
	t.Helper()
	topic = s.create(t, client, id, partitions)
	write := toTopic(t, client.Producer(topic))
	for p := range partitions {
		write(p, []bus.Record{encodeRecord(t, chain.Hash{}, wire.Epoch{Number: 1, Owner: "the topic's first"}, 1)})
	}
	return topic
}

// create creates the log topic of a chain, in which nothing stands.
func (s *site) create(t failer, client *bus.Client, id uint64, partitions int) (topic string) {
	t.Helper()
	topic = wire.LogTopic(id)
	keeper := wire.Config{ChainID: id, LogPartitions: partitions, JobPartitions: 1}
	if err := client.Ensure(context.Background(), bus.Specs(keeper.Named(topic)...)); err != nil {
		t.Fatal(err)
	}
	return topic
}

// again writes lost batches once more, as the next writer. What a replaced scanner had written is not
// written again.
func (x *exchange) again(gone [][][]bus.Record) {
	x.t.Helper()
	x.epoch++
	x.everywhere(wire.Epoch{Number: x.epoch, Owner: "the next writer"})
	for p, batches := range gone {
		highest := uint64(0)
		for _, records := range batches {
			var repeated []bus.Record
			for _, r := range records {
				m, meta, err := wire.Decode(r)
				if err != nil {
					x.t.Fatal(err)
				}
				if meta.Epoch < highest {
					break
				}
				highest = meta.Epoch
				if _, claim := m.(wire.Epoch); claim {
					continue
				}
				repeated = append(repeated, x.encode(chain.Hash(r.Key), m))
			}
			if len(repeated) > 0 {
				x.send(p, repeated)
			}
		}
	}
}

// PIPE-3: brokers that lost the end of the topic, which the database did not, need no operator: the rows go back to what
// the topic still has, and follow what the scanner writes again.
func TestLostTail(t *testing.T) {
	for name, test := range map[string]struct {
		lost    func(x *exchange) (batches int) // what happens, and how much of it is lost
		written func(x *exchange, gone [][][]bus.Record)
	}{
		"the same blocks": {
			func(x *exchange) int { x.grow(3); x.grow(3); x.grow(3); return 3 },
			func(x *exchange, gone [][][]bus.Record) { x.again(gone) },
		},
		"nothing but control records": {
			func(x *exchange) int { x.finalize(2); x.succeed(); return 2 },
			func(x *exchange, gone [][][]bus.Record) { x.again(nil) },
		},
		"epochs that are given again": {
			func(x *exchange) int { x.succeed(); x.grow(2); x.succeed(); x.grow(2); return 6 },
			func(x *exchange, gone [][][]bus.Record) { x.epoch -= 2; x.again(gone) },
		},
		"a claim, and a batch was on its way under it": {
			func(x *exchange) int { x.grow(3); x.succeed(); x.grow(3); x.grow(3); return 4 },
			func(x *exchange, gone [][][]bus.Record) {
				x.publish(x.child(), nil)
				x.again(gone)
			},
		},
		"another branch": {
			func(x *exchange) int { x.grow(3); x.grow(3); x.grow(3); return 3 },
			func(x *exchange, gone [][][]bus.Record) {
				x.again([][][]bus.Record{gone[0][:1]})
				x.rewind(2)
				x.grow(2)
			},
		},
		"a reorg below what is left": {
			func(x *exchange) int { x.grow(3); x.grow(3); x.grow(3); return 2 },
			func(x *exchange, gone [][][]bus.Record) {
				x.again(nil)
				x.rewind(2)
				x.reorg(1)
				x.grow(2)
				x.grow(1)
			},
		},
		"a reorg and what followed": {
			func(x *exchange) int { x.grow(2); x.grow(2); x.reorg(2); x.grow(3); return 2 },
			func(x *exchange, gone [][][]bus.Record) { x.again(gone) },
		},
	} {
		for _, waits := range []bool{true, false} { // statevm runs while the end is missing, or only afterwards
			t.Run(name+map[bool]string{true: ", running", false: ", restarted"}[waits], func(t *testing.T) {
				s := newSite(t)
				x, topic, generation := s.play(t, 5, 1)
				written := x.record()
				x.everywhere(wire.Epoch{Number: 1, Owner: "the first"})
				for range 6 {
					x.grow(3)
				}
				lost := test.lost(x)
				s.catchUp(t, s.db, topic, generation, 1)
				_, gone := s.cut(t, x, written, func(int) int { return lost })
				var i *instance
				if waits {
					i = s.launch(s.config(1, s.dbURL))
					eventually(t, "it follows what is left of the topic", func() bool { return owned(i) == 1 })
				}
				test.written(x, gone)
				for range 5 {
					x.grow(2)
				}
				if !waits {
					i = s.launch(s.config(1, s.dbURL))
				}
				eventually(t, "it has caught up by itself", func() bool {
					if reason := i.reason("partitions"); strings.Contains(reason, "halted") {
						t.Fatal(reason)
					}
					return s.caughtUp(x)
				})
				x.agree(s.db, generation)
			})
		}
	}
}

// A topic in which nothing is where the rows have it from is another topic: it is refused in one line, whatever stands
// in it.
func TestAnotherTopicIsRefused(t *testing.T) {
	s := newSite(t)
	x, topic, generation := s.play(t, 5, 1)
	for range 6 {
		x.grow(3)
	}
	s.catchUp(t, s.db, topic, generation, 1)
	before := x.tip()
	other, _, _ := s.play(t, 6, 1)
	for range 9 {
		other.grow(3)
	}
	p := claim(t, s.db, generation, 0, 1)
	err := s.follow(t, p, wire.LogTopic(s.chain.Load()))
	if !halts(err) || !strings.Contains(err.Error(), "it is another topic") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if at := p.Offset(); at.Tip != before {
		t.Errorf("the rows stand at %+v", at.Tip)
	}
}

// The brokers come back under a statevm that has never stopped, without the end of the topic, and the scanner has
// written on past its place before it looks.
func TestLostTailUnderARunningReader(t *testing.T) {
	s := newSite(t)
	b, err := broker.Start(broker.Config{MinSessionTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s.kafka.Brokers = b.Addrs()
	s.client = rig.Kafka(s.t, s.kafka)
	x, _, generation := s.play(t, 5, 1)
	written := x.record()
	x.everywhere(wire.Epoch{Number: 1, Owner: "the first"})
	for range 6 {
		x.grow(3)
	}
	i := s.launch(s.config(1, s.dbURL))
	eventually(t, "it follows", func() bool { return s.caughtUp(x) })

	addresses := b.Addrs()
	b.Close()
	if b, err = broker.Start(broker.Config{MinSessionTimeout: time.Millisecond, Listen: addresses}); err != nil {
		t.Fatal(err)
	}
	client := rig.Kafka(s.t, s.kafka)
	topic := s.ensure(t, client, s.chain.Load(), 1)
	x.write = toTopic(t, client.Producer(topic))
	const lost = 3
	kept := written[0][:len(written[0])-lost]
	for _, records := range kept {
		x.write(0, records)
	}
	x.epoch++
	x.everywhere(wire.Epoch{Number: x.epoch, Owner: "the next writer"})
	x.rewind(lost)
	for range 12 {
		x.grow(1)
	}
	eventually(t, "it has caught up by itself", func() bool {
		if reason := i.reason("partitions"); strings.Contains(reason, "halted") {
			t.Fatal(reason)
		}
		return s.caughtUp(x)
	})
	x.agree(s.db, generation)
}
