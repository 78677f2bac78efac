package bustest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// fill writes n numbered records in batches of size.
func (s *site) fill(topic string, n, size int) {
	s.Helper()
	producer := s.client().Producer(topic)
	for first := 0; first < n; first += size {
		_, err := producer.Produce(s.ctx, 0, numbered(first, min(size, n-first)))
		s.must(err)
	}
}

// Records in front of a reader are deleted while it reads: it must not go over the hole.
func holeStopsReader(s *site) {
	topic, c := s.topic(1), s.client()
	s.fill(topic, 100, 10)
	r := c.Reader(topic, 0, 0)
	for range 5 {
		_, err := r.NextBatch(s.ctx, 3)
		s.must(err)
	}
	read := r.Offset()
	for r.Offset() < 100 { // what has been fetched already is delivered
		_, err := r.NextBatch(s.ctx, 100)
		s.must(err)
	}
	r = c.Reader(topic, 0, read)
	s.witness().deleteBelow(topic, 60)
	for range 2 {
		_, err := r.Next(s.ctx)
		s.wantGap(err, topic, read, 60)
	}
	first, err := c.Reader(topic, 0, 60).Next(s.ctx)
	s.must(err)
	if first.Offset != 60 {
		s.Fatalf("reading from the new start begins at %d", first.Offset)
	}
	middle, err := c.Reader(topic, 0, 67).Next(s.ctx) // in the middle of a batch
	s.must(err)
	if string(middle.Value) != "67" {
		s.Fatalf("reading from 67 begins with %s", middle.Value)
	}
}

// A reader that watches begins only behind the record it is given, and reports where the log is another one.
func replacedRecordStopsReader(s *site) {
	topic, c := s.topic(1), s.client()
	s.fill(topic, 20, 10)
	before, err := c.Reader(topic, 0, 11).Next(s.ctx)
	s.must(err)
	next, err := c.Reader(topic, 0, 12).Watch(wire.Fingerprint(before)).Next(s.ctx)
	s.must(err)
	if next.Offset != 12 {
		s.Fatalf("reading from 12 begins at %d", next.Offset)
	}
	for _, start := range []int64{5, 12, 20} { // with records to come, inside a batch, and at the end
		mark := wire.Fingerprint(before)
		mark[0]++
		r := c.Reader(topic, 0, start).Watch(mark)
		for range 2 {
			if _, err := r.Next(s.ctx); !bus.LostLog(err) ||
				!strings.Contains(err.Error(),
					fmt.Sprintf("%s/0: the record at offset %d is another", topic, start-1)) {
				s.Fatalf("from %d: %v", start, err)
			}
		}
	}
}

// wantGap fails unless the reader of partition 0 says which offsets are gone.
func (s *site) wantGap(err error, topic string, from, to int64) {
	s.Helper()
	if !errors.Is(err, bus.ErrGap) ||
		!strings.Contains(err.Error(), fmt.Sprintf("%s/0: offsets %d to %d are missing", topic, from, to-1)) {
		s.Fatalf("offsets %d to %d: %v", from, to, err)
	}
}

func startOutsideLog(s *site) {
	topic, c := s.topic(1), s.client()
	s.fill(topic, 20, 10)
	s.witness().deleteBelow(topic, 5)
	_, err := c.Reader(topic, 0, 4).Next(s.ctx)
	s.wantGap(err, topic, 4, 5)
	r := c.Reader(topic, 0, 21)
	for range 2 {
		if _, err := r.Next(s.ctx); !bus.LostLog(err) ||
			!strings.Contains(err.Error(), topic+"/0: offset 21 is beyond the end of the log at 20") {
			s.Fatalf("beyond the end: %v", err)
		}
	}
	if _, err := c.Reader(topic, 7, 0).Next(s.ctx); !bus.NoTopic(err) {
		s.Fatalf("no such partition: %v", err)
	}
	if _, err := c.Reader(s.name(), 0, 0).Next(s.ctx); !bus.NoTopic(err) {
		s.Fatalf("no such topic: %v", err)
	}
}

// At the end a reader waits, ends with its context, can be used again, and delivers the next record.
func endIsWaitedAt(s *site) {
	topic, c := s.topic(1), s.client()
	s.fill(topic, 3, 3)
	r := c.Reader(topic, 0, 3)
	ctx, cancel := context.WithTimeout(s.ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("at the end: %v", err)
	}
	var got bus.Record
	var err error
	var reading sync.WaitGroup
	reading.Go(func() { got, err = r.Next(s.ctx) })
	_, produceErr := c.Producer(topic).Produce(s.ctx, 0, numbered(3, 1))
	s.must(produceErr)
	reading.Wait()
	s.must(err)
	if got.Offset != 3 || string(got.Value) != "3" || r.Offset() != 4 {
		s.Fatalf("got %s at %d; the reader stands at %d", got.Value, got.Offset, r.Offset())
	}
}

// A transaction, committed or aborted, leaves records and markers of which a reader cannot say what they mean.
func transactionsStopReader(s *site) {
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		topic, c := s.topic(1), s.client()
		s.fill(topic, 2, 1)
		foreign := s.witness(kgo.TransactionalID(s.name()), kgo.DefaultProduceTopic(topic),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		s.must(foreign.client.BeginTransaction())
		s.must(foreign.client.ProduceSync(s.ctx, kgo.StringRecord("in doubt")).FirstErr())
		s.must(foreign.client.EndTransaction(s.ctx, commit))
		s.wantForeign(c.Reader(topic, 0, 0), 2)
		s.wantForeign(c.Reader(topic, 0, 3), 3) // the marker itself
	}
}

// wantForeign reads what is native and then expects the stop.
func (s *site) wantForeign(r *bus.Reader, at int64) {
	s.Helper()
	for r.Offset() < at {
		_, err := r.Next(s.ctx)
		s.must(err)
	}
	for range 2 {
		if _, err := r.Next(s.ctx); !errors.Is(err, bus.ErrForeignBatch) ||
			!strings.Contains(err.Error(), fmt.Sprintf("at offset %d:", at)) {
			s.Fatalf("at offset %d: %v", at, err)
		}
	}
}

// Brokers may compress (compression.type); that is no stranger.
func compressedBatchesCanBeRead(s *site) {
	topic, c := s.topic(1), s.client()
	for i, codec := range []kgo.CompressionCodec{kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(),
		kgo.ZstdCompression()} {
		w := s.witness(kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(topic))
		records := make([]*kgo.Record, 50)
		for j := range records {
			records[j] = kgo.StringRecord(strconv.Itoa(50*i + j))
		}
		s.must(w.client.ProduceSync(s.ctx, records...).FirstErr())
	}
	r := c.Reader(topic, 0, 0)
	for i := range 200 {
		got, err := r.Next(s.ctx)
		s.must(err)
		if string(got.Value) != strconv.Itoa(i) || got.Offset != int64(i) {
			s.Fatalf("record %d is %s at %d", i, got.Value, got.Offset)
		}
	}
}

func boundsAndTimes(s *site) {
	topic, c := s.topic(2), s.client()
	wantBounds := func(partition int, first, end int64) {
		s.Helper()
		gotFirst, gotEnd, err := c.Bounds(s.ctx, topic, partition)
		s.must(err)
		if gotFirst != first || gotEnd != end {
			s.Fatalf("partition %d goes from %d to %d, want %d to %d", partition, gotFirst, gotEnd, first, end)
		}
	}
	wantAt := func(at time.Time, want int64) {
		s.Helper()
		got, err := c.OffsetAt(s.ctx, topic, 0, at)
		s.must(err)
		if got != want {
			s.Fatalf("at %s: offset %d, want %d", at, got, want)
		}
	}
	wantBounds(1, 0, 0)
	wantAt(time.Now().Add(-time.Hour), 0)
	start := time.Now()
	s.fill(topic, 5, 5)
	var between time.Time
	last, err := c.Reader(topic, 0, 4).Next(s.ctx)
	s.must(err)
	s.eventually("a later millisecond than the last record's",
		func() bool { between = time.Now().Truncate(time.Millisecond); return between.After(last.Time) })
	_, err = c.Producer(topic).Produce(s.ctx, 0, numbered(5, 5))
	s.must(err)
	wantBounds(0, 0, 10)
	wantAt(start.Add(-time.Hour), 0)
	wantAt(between, 5)
	wantAt(time.Now().Add(time.Minute), 10)
	s.witness().deleteBelow(topic, 7)
	wantBounds(0, 7, 10)
	wantAt(start.Add(-time.Hour), 7)
	wantScan := func(from int64, want string) {
		s.Helper()
		var got strings.Builder
		for r, err := range c.Scan(s.ctx, topic, 0, from) {
			s.must(err)
			if _, _ = fmt.Fprintf(&got, "%s ", r.Value); r.Offset == 9 { // what comes meanwhile is not waited for
				_, err = c.Producer(topic).Produce(s.ctx, 0, numbered(10, 1))
				s.must(err)
			}
		}
		if got.String() != want {
			s.Fatalf("a scan from %d yields %q, want %q", from, got.String(), want)
		}
	}
	wantScan(11, "")
	wantScan(8, "8 9 ")
	wantScan(0, "7 8 9 10 ")
	for r, err := range c.Scan(s.ctx, topic, 0, 0) {
		if s.must(err); r.Offset > 7 {
			s.Fatalf("a scan goes on with %d", r.Offset)
		}
		break
	}
	asked := false
	for _, err := range c.Scan(s.ctx, s.name(), 0, 0) {
		if asked = true; !bus.NoTopic(err) {
			s.Fatalf("no such topic: %v", err)
		}
	}
	if !asked {
		s.Fatalf("a scan of no topic says nothing")
	}
	if _, _, err := c.Bounds(s.ctx, topic, 2); !bus.NoTopic(err) {
		s.Fatalf("no such partition: %v", err)
	}
	if _, err := c.OffsetAt(s.ctx, s.name(), 0, start); !bus.NoTopic(err) {
		s.Fatalf("no such topic: %v", err)
	}
}
