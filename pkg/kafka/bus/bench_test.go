package bus

import (
	"bytes"
	"testing"
)

// The benchmarks run on KAFKA_BROKERS, or else on the embedded broker in memory; a record has 300 bytes.

var payload = bytes.Repeat([]byte("perp"), 75)

func batchOf(n int) []Record {
	records := make([]Record, n)
	for i := range records {
		records[i].Value = payload
	}
	return records
}

func BenchmarkProduceOne(b *testing.B) { benchmarkProduce(b, 1) }
func BenchmarkProduce500(b *testing.B) { benchmarkProduce(b, 500) }

func benchmarkProduce(b *testing.B, size int) {
	c := connect(b, addresses(b))
	p := c.Producer(newTopic(b, c))
	records := batchOf(size)
	ctx := b.Context()
	for b.Loop() {
		if _, err := p.Produce(ctx, 0, records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkRead reads a prepared partition from its start, over and over.
func BenchmarkRead(b *testing.B) {
	const total = 200_000
	c := connect(b, addresses(b))
	topic := newTopic(b, c)
	p := c.Producer(topic)
	ctx := b.Context()
	for range total / 1000 {
		if _, err := p.Produce(ctx, 0, batchOf(1000)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for r := c.Reader(topic, 0, 0); r.Offset() < total; {
			if _, err := r.NextBatch(ctx, 1000); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(total*b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkWriteToRead is one record on its way: written, acknowledged, and in the hands of a reader that waits for it.
func BenchmarkWriteToRead(b *testing.B) {
	c := connect(b, addresses(b))
	topic := newTopic(b, c)
	p := c.Producer(topic)
	ctx := b.Context()
	got := make(chan int64)
	go func() {
		defer close(got)
		r := c.Reader(topic, 0, 0)
		for {
			record, err := r.Next(ctx)
			if err != nil {
				return
			}
			got <- record.Offset
		}
	}()
	records := batchOf(1)
	for b.Loop() {
		offset, err := p.Produce(ctx, 0, records)
		if err != nil {
			b.Fatal(err)
		}
		if read := <-got; read != offset {
			b.Fatalf("read %d after writing %d", read, offset)
		}
	}
}
