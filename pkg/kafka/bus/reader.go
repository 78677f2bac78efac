package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"perpkeeper/pkg/kafka/wire"
)

// longPoll is how long a broker holds a fetch that finds nothing new. A new record ends the wait at once.
const longPoll = 500 * time.Millisecond

// Reader delivers one partition from an explicit offset, every offset once and in order. It is not safe for concurrent
// use. It holds no connection and no goroutine between calls, and needs no closing.
type Reader struct {
	c         *Client
	topic     string
	partition int

	next   int64 // the offset to be fetched next; that of the next delivered record is Offset
	ready  []Record
	opened bool
	beyond time.Time // since when the brokers say that next is beyond the end; zero when they do not
	failed error     // what stopped this reader for good

	watches bool      // it looks whether the log is still the one it has read
	last    [32]byte  // fingerprint of the record before next; zero when it is not known
	sure    time.Time // when next was last known to follow that record; zero when it is in doubt
}

// pause is how long after a fetch the log may have been replaced under a reader: no broker loses its tail and is back
// in less.
const pause = 2 * time.Second

// Watch has the reader notice a log that lost its tail and was written again past where the reader stands: it looks
// again at the record before, at first and after every failure or pause, and stops for good (LostLog) when it is
// another one. Last is the fingerprint ([wire.Fingerprint]) of the record before the start; zero when it is not known.
// Watch returns the reader.
func (r *Reader) Watch(last [32]byte) *Reader {
	r.watches, r.last = true, last
	return r
}

// Reader returns a reader that starts at an offset: 0 or more, at most the partition's end. It does not connect; a
// start that is not in the log is the error of the first read.
func (c *Client) Reader(topic string, partition int, offset int64) *Reader {
	return &Reader{c: c, topic: topic, partition: partition, next: offset}
}

// Offset is the offset of the record that the next read will return.
func (r *Reader) Offset() int64 { return r.next - int64(len(r.ready)) }

// Next returns the next record, waiting until there is one. See NextBatch.
func (r *Reader) Next(ctx context.Context) (Record, error) {
	records, err := r.NextBatch(ctx, 1)
	if err != nil {
		return Record{}, err
	}
	return records[0], nil
}

// NextBatch returns the next records, at least one and at most limit (1 or more), and waits until there is one. The
// records are the caller's to keep. Brokers that are down are waited for.
//
// It fails when ctx ends, and the reader can then be used further. It fails for good, with the same error at every
// later call: ErrGap when offsets are missing (also when the start is below the log's first offset), ErrForeignBatch
// when a batch is not what this package writes, and an error for which LostLog is true when the start is above the
// log's end, when there is no such partition or, if it watches for that, when the log is another one.
func (r *Reader) NextBatch(ctx context.Context, limit int) ([]Record, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	if ctx.Err() != nil { // also when records are ready: a claim that has ended delivers nothing more
		return nil, fmt.Errorf("reading %s/%d: %w", r.topic, r.partition, context.Cause(ctx))
	}
	if len(r.ready) == 0 {
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
	n := min(max(limit, 1), len(r.ready))
	batch := r.ready[:n:n]
	r.ready = r.ready[n:]
	return batch, nil
}

// fill waits for records.
func (r *Reader) fill(ctx context.Context) error {
	doing := fmt.Sprintf("reading %s/%d", r.topic, r.partition)
	t := r.c.try(doing)
	defer t.end()
	for t.Next(ctx) {
		records, err := r.fetch(ctx)
		switch {
		case err == nil && len(records) == 0:
			t.succeeded()
		case err == nil:
			t.succeeded()
			r.ready, r.next = records, r.next+int64(len(records))
			return nil
		case stops(err):
			r.failed = fmt.Errorf("%s: %w", doing, err)
			return r.failed
		default:
			r.sure = time.Time{}
			t.Failed(err)
		}
	}
	return fmt.Errorf("%s: %w", doing, t.Err(ctx))
}

// stops reports whether a reader must not go on.
func stops(err error) bool {
	return errors.Is(err, ErrGap) || errors.Is(err, ErrForeignBatch) || LostLog(err)
}

// fetch returns what there is at the next offset, after at most the long poll; nothing new is not an error.
func (r *Reader) fetch(ctx context.Context) ([]Record, error) {
	if !r.opened {
		if err := r.c.checkPartition(ctx, r.topic, r.partition); err != nil {
			return nil, err
		}
		r.opened = true
	}
	if err := r.recheck(ctx); err != nil {
		return nil, err
	}
	answer, err := r.ask(ctx, r.next, longPoll)
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return nil, r.outOfRange(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.beyond = time.Time{}
	records, err := r.decode(answer.Records)
	if err == nil {
		lag := answer.HighWatermark - r.next - int64(len(records))
		r.c.metrics.behind.WithLabelValues(r.topic, strconv.Itoa(r.partition)).Set(float64(max(lag, 0)))
		r.sure = time.Now()
	}
	if r.watches && len(records) > 0 {
		r.last = wire.Fingerprint(records[len(records)-1])
	}
	return records, err
}

func (r *Reader) ask(ctx context.Context, offset int64, wait time.Duration) (*kafka.FetchResponse, error) {
	answer, err := r.c.kafka.Fetch(ctx, &kafka.FetchRequest{
		Topic:     r.topic,
		Partition: r.partition,
		Offset:    offset,
		MinBytes:  1,
		MaxBytes:  int64(r.c.cfg.MaxBytes / packing), // brokers answer with one whole batch at least
		MaxWait:   wait,
	})
	if errors.Is(err, errUnpacked) {
		return nil, r.foreign(err.Error())
	}
	if err == nil {
		err = answer.Error
	}
	return answer, err
}

// recheck looks, where it is in doubt, whether the record before the next one is still the one that was read. That it
// is not there any more is for the next fetch to find out.
func (r *Reader) recheck(ctx context.Context) error {
	if !r.watches || r.last == ([32]byte{}) || r.next == 0 || time.Since(r.sure) < pause {
		return nil
	}
	answer, err := r.ask(ctx, r.next-1, time.Millisecond)
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return nil
	}
	if err != nil {
		return err
	}
	before := &Reader{c: r.c, topic: r.topic, partition: r.partition, next: r.next - 1}
	records, err := before.decode(answer.Records)
	if len(records) > 0 && wire.Fingerprint(records[0]) != r.last {
		return fmt.Errorf("%s/%d: the record at offset %d is another one than was read there: %w", r.topic, r.partition,
			r.next-1, errRewritten)
	}
	return err
}

// outOfRange finds out what a broker meant by refusing the offset. That the log starts higher is final, since a log's
// start only moves up. That it ends lower is believed when it is still so after the leader's place has been asked for
// anew: a deposed leader may have answered.
func (r *Reader) outOfRange(ctx context.Context) error {
	first, end, err := r.c.bounds(ctx, r.topic, r.partition)
	switch {
	case err != nil:
		return err
	case r.next < first:
		return r.gap(first)
	case r.next <= end:
		r.beyond = time.Time{}
		return fmt.Errorf("offset %d was refused, though the log goes from %d to %d", r.next, first, end)
	case r.beyond.IsZero():
		r.beyond = time.Now()
		fallthrough
	case time.Since(r.beyond) < 2*r.c.cfg.MetadataTTL:
		return fmt.Errorf("offset %d seems to be beyond the end at %d", r.next, end)
	default:
		return fmt.Errorf("%s/%d: offset %d is %w at %d", r.topic, r.partition, r.next, errBeyondEnd, end)
	}
}

func (r *Reader) gap(got int64) error {
	r.c.metrics.gaps.WithLabelValues(r.topic).Inc()
	return fmt.Errorf("%s/%d: offsets %d to %d %w", r.topic, r.partition, r.next, got-1, ErrGap)
}

// Record is one message of a partition. It is the codec's own type, so that nothing is copied between reading and
// decoding.
type Record = wire.Record

// Header is one entry of a record's ordered list of headers; keys may repeat.
type Header = wire.Header
