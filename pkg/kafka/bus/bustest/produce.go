package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"perpkeeper/pkg/kafka/bus"
)

func roundTrip(s *site) {
	c, topic := s.client(), s.topic(2)
	want := []bus.Record{
		{Key: []byte("account"), Value: []byte("value"), Headers: []bus.Header{{Key: "t", Value: []byte("LOG")},
			{Key: "t", Value: []byte("again")}}},
		{Key: nil, Value: []byte{}, Headers: []bus.Header{{Key: "", Value: nil}, {Key: "empty", Value: []byte{}}}},
		{Key: []byte{}, Value: nil},
		{Key: []byte{0, 255}, Value: bytes.Repeat([]byte("0123456789"), 20_000)},
	}
	before := time.Now().Truncate(time.Millisecond)
	base, err := c.Producer(topic).Produce(s.ctx, 1, want)
	s.must(err)
	after := time.Now()
	r := c.Reader(topic, 1, base)
	for i, w := range want {
		got, err := r.Next(s.ctx)
		s.must(err)
		if got.Offset != base+int64(i) || got.Partition != 1 || got.Time.Before(before) || got.Time.After(after) {
			s.Fatalf("record %d came from partition %d, offset %d, %s", i, got.Partition, got.Offset, got.Time)
		}
		if !same(got.Key, w.Key) || !same(got.Value, w.Value) || len(got.Headers) != len(w.Headers) {
			s.Fatalf("record %d: got %.100v, want %.100v", i, got, w)
		}
		for j, h := range got.Headers {
			if h.Key != w.Headers[j].Key || !same(h.Value, w.Headers[j].Value) {
				s.Fatalf("record %d, header %d: got %v, want %v", i, j, h, w.Headers[j])
			}
		}
	}
}

// same keeps nil apart from empty.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// Several producers write to one partition at once; each batch must stay in one piece and in its order.
func batchIsNeverTorn(s *site) {
	const producers, batches, size = 4, 25, 7
	topic := s.topic(1)
	var writers sync.WaitGroup
	for p := range producers {
		producer := s.client().Producer(topic)
		writers.Go(func() {
			for b := range batches {
				records := make([]bus.Record, size)
				for i := range records {
					records[i].Value = fmt.Appendf(nil, "%d/%d/%d", p, b, i)
				}
				if _, err := producer.Produce(s.ctx, 0, records); err != nil {
					s.Error(err)
				}
			}
		})
	}
	writers.Wait()
	log := s.witness().batches(topic)
	if len(log) != producers*batches {
		s.Fatalf("the log has %d batches, want %d", len(log), producers*batches)
	}
	next := make(map[int]int)
	for _, b := range log {
		var p, n, i int
		if _, err := fmt.Sscanf(b.values[0], "%d/%d/%d", &p, &n, &i); err != nil || n != next[p] ||
			len(b.values) != size {
			s.Fatalf("a batch starts with %q and has %d records; producer %d has written %d batches so far",
				b.values[0], len(b.values), p, next[p])
		}
		next[p]++
		for i, v := range b.values {
			if want := fmt.Sprintf("%d/%d/%d", p, n, i); v != want {
				s.Fatalf("%q where %q belongs", v, want)
			}
		}
	}
}

// Replies are cut after the broker has written the batch, some twice in a row, and requests before it has. PIPE-2.
func cutRepliesMakeNoCopies(s *site) {
	const batches = 90
	var n network
	c, topic := s.client(over(&n)), s.topic(1)
	producer := c.Producer(topic)
	written := 0
	for i := range batches {
		switch i % 9 {
		case 2:
			n.plan(cutReply)
		case 5:
			n.plan(cutReply, cutReply, cutReply)
		case 8:
			n.plan(isLost, cutReply, isLost)
		}
		size := 1 + i%5
		base, err := producer.Produce(s.ctx, 0, numbered(written, size))
		s.must(err)
		if base != int64(written) {
			s.Fatalf("batch %d is said to start at %d, want %d", i, base, written)
		}
		written += size
	}
	s.wantNumbers(s.witness().values(topic), written)
	if cuts := n.count(cutReply); cuts < 20 {
		s.Fatalf("only %d replies were cut", cuts)
	}
	s.Logf("%d replies cut, %d requests lost, %d records: none twice, none missing", n.count(cutReply), n.count(isLost),
		written)
}

// What the producer relies on: a broker takes a repeated sequence for the batch it has, and refuses to skip one.
func brokersJudgeSequences(s *site) {
	w, topic := s.witness(), s.topic(1)
	id, epoch := w.newProducerID()
	first, err := w.produce(topic, id, epoch, 0, "0", "1")
	s.must(err)
	again, err := w.produce(topic, id, epoch, 0, "0", "1")
	s.must(err)
	if again != first {
		s.Fatalf("the repeated batch is said to be at %d, want %d", again, first)
	}
	if _, err := w.produce(topic, id, epoch, 7, "7"); !errors.Is(err, kerr.OutOfOrderSequenceNumber) {
		s.Fatalf("a sequence was skipped: %v", err)
	}
	if _, err := w.produce(topic, id, epoch, 2, "2"); err != nil {
		s.Fatalf("the next sequence: %v", err)
	}
	s.wantNumbers(w.values(topic), 3)
}

func producersHaveIdentities(s *site) {
	c, topic := s.client(), s.topic(1)
	for range 2 {
		producer := c.Producer(topic)
		for range 3 {
			_, err := producer.Produce(s.ctx, 0, numbered(0, 2))
			s.must(err)
		}
	}
	log := s.witness().batches(topic)
	for i, b := range log {
		own, sequence := log[i/3*3].ProducerID, int32(i%3*2)
		if b.ProducerID < 0 || b.ProducerID != own || b.FirstSequence != sequence || b.Attributes != 0 {
			s.Fatalf("batch %d: producer %d (want %d), sequence %d (want %d), attributes %d", i, b.ProducerID, own,
				b.FirstSequence, sequence, b.Attributes)
		}
	}
	if len(log) != 6 || log[0].ProducerID == log[3].ProducerID {
		s.Fatalf("%d batches; two producers have the identity %d", len(log), log[0].ProducerID)
	}
}

// Somebody raises the producer's epoch: it must stop, say that the outcome is unknown, and write nothing more.
func fencedProducerStops(s *site) {
	s.stopsProducer(func(w *witness, topic string, last rawBatch) {
		_, err := w.produce(topic, last.ProducerID, last.ProducerEpoch+1, 0, "1")
		s.must(err)
	})
}

// Somebody uses up the producer's next sequence numbers: the broker's memory and the producer's are then not the same.
func takenSequenceStopsProducer(s *site) {
	s.stopsProducer(func(w *witness, topic string, last rawBatch) {
		_, err := w.produce(topic, last.ProducerID, last.ProducerEpoch, 1, "1", "2", "3")
		s.must(err)
	})
}

// A topic that was deleted and made anew stops its producer, whether the brokers take the batch that comes to it or
// refuse its sequence.
func topicMadeAnewStopsProducer(s *site) {
	c, topic, w := s.client(), s.topic(1), s.witness()
	producer := c.Producer(topic)
	for n := range 3 {
		_, err := producer.Produce(s.ctx, 0, numbered(n, 1))
		s.must(err)
	}
	w.remove(topic)
	s.eventually("the topic is gone", func() bool { return !w.exists(topic) })
	s.must(c.Ensure(s.ctx, []bus.TopicSpec{{Name: topic, Partitions: 1, Replication: s.cluster.Replication}}))
	_, err := producer.Produce(s.ctx, 0, numbered(3, 1))
	s.Logf("the brokers took it: %t; %v", bus.LostLog(err), err)
	if _, again := producer.Produce(s.ctx, 0, numbered(4, 1)); !bus.OutcomeUnknown(err) || !bus.OutcomeUnknown(again) {
		s.Fatalf("got %v, then %v", err, again)
	}
	if values := w.values(topic); len(values) > 1 || bus.LostLog(err) != (len(values) == 1) {
		s.Fatalf("the new topic holds %v after %v", values, err)
	}
}

func (s *site) stopsProducer(interfere func(w *witness, topic string, last rawBatch)) {
	s.Helper()
	c, topic, w := s.client(), s.topic(1), s.witness()
	producer := c.Producer(topic)
	_, err := producer.Produce(s.ctx, 0, numbered(0, 1))
	s.must(err)
	interfere(w, topic, w.batches(topic)[0])
	before := w.values(topic)
	for range 2 {
		if _, err := producer.Produce(s.ctx, 0, numbered(100, 1)); !bus.OutcomeUnknown(err) {
			s.Fatalf("got %v", err)
		}
	}
	if after := w.values(topic); len(after) != len(before) {
		s.Fatalf("the stopped producer wrote: %v", after)
	}
	_, err = c.Producer(topic).Produce(s.ctx, 0, numbered(len(before), 1))
	s.must(err)
	s.wantNumbers(w.values(topic), len(before)+1)
}

// ctx ends when a request is out: nobody can know what became of it.
func unclearEndIsSaid(s *site) {
	for name, f := range map[string]fate{"the reply is cut": cutReply, "the request is swallowed": isSwallowed} {
		var n network
		c, topic := s.client(over(&n)), s.topic(1)
		producer := c.Producer(topic)
		_, err := producer.Produce(s.ctx, 0, numbered(0, 1))
		s.must(err)
		ctx, cancel := context.WithCancel(s.ctx)
		var produced sync.WaitGroup
		n.plan(f, isSwallowed)
		produced.Go(func() { _, err = producer.Produce(ctx, 0, numbered(1, 1)) })
		s.eventually("a request is out", func() bool { return n.count(isSwallowed) == 1 })
		cancel()
		produced.Wait()
		if !bus.OutcomeUnknown(err) || !errors.Is(err, context.Canceled) {
			s.Fatalf("%s: got %v", name, err)
		}
		if _, err := producer.Produce(s.ctx, 0, numbered(1, 1)); !bus.OutcomeUnknown(err) {
			s.Fatalf("%s: the producer goes on: %v", name, err)
		}
		want := 1
		if f == cutReply {
			want = 2
		}
		s.wantNumbers(s.witness().values(topic), want)
	}
}

// ctx ends before anything could be sent: it is known that nothing was written, and the producer can be used when the
// network is back.
func clearEndLeavesItUsable(s *site) {
	var n network
	n.sever()
	topic := s.topic(1)
	c := s.client(over(&n))
	producer := c.Producer(topic)
	ctx, cancel := context.WithCancel(s.ctx)
	var produced sync.WaitGroup
	var err error
	produced.Go(func() { _, err = producer.Produce(ctx, 0, numbered(0, 1)) })
	s.eventually("the wait shows in Health", func() bool { return c.Health() != nil })
	cancel()
	produced.Wait()
	if bus.OutcomeUnknown(err) || !errors.Is(err, context.Canceled) {
		s.Fatalf("got %v", err)
	}
	s.must(c.Health())
	n.reconnect()
	_, err = producer.Produce(s.ctx, 0, numbered(0, 1))
	s.must(err)
	s.wantNumbers(s.witness().values(topic), 1)
}

func tooLargeIsRefused(s *site) {
	c := s.client(func(cfg *bus.Config) { cfg.MaxBytes = 100_000 })
	topic := s.topicWith(1, map[string]string{"max.message.bytes": "50000"})
	producer := c.Producer(topic)
	_, err := producer.Produce(s.ctx, 0, []bus.Record{{Value: make([]byte, 60_000)}, {Value: make([]byte, 60_000)}})
	if !errors.Is(err, bus.ErrTooLarge) || bus.OutcomeUnknown(err) {
		s.Fatalf("larger than max_bytes: %v", err)
	}
	if _, err = producer.Produce(s.ctx, 0, []bus.Record{{Value: incompressible(60_000)}}); err == nil ||
		bus.OutcomeUnknown(err) {
		s.Fatalf("larger than the topic allows: %v", err)
	}
	if _, err = producer.Produce(s.ctx, 0, nil); err == nil || bus.OutcomeUnknown(err) {
		s.Fatalf("no records: %v", err)
	}
	_, err = producer.Produce(s.ctx, 0, numbered(0, 1))
	s.must(err)
	s.wantNumbers(s.witness().values(topic), 1)
}

// incompressible are bytes that no compression makes fewer.
func incompressible(n int) []byte {
	value := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(value) // it never fails
	return value
}

func messageOf9MB(s *site) {
	c, topic := s.client(), s.topic(1)
	value := incompressible(9 << 20)
	_, err := c.Producer(topic).Produce(s.ctx, 0, []bus.Record{{Value: value}, {Value: []byte("next")}})
	s.must(err)
	r := c.Reader(topic, 0, 0)
	for _, want := range [][]byte{value, []byte("next")} {
		got, err := r.Next(s.ctx)
		s.must(err)
		if !bytes.Equal(got.Value, want) {
			s.Fatalf("%d bytes came back, want %d", len(got.Value), len(want))
		}
	}
}
