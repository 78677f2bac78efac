package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"perpkeeper/pkg/kafka/wire"
)

// clearUpWithin bounds how long an unclear batch is repeated. Brokers forget producers after a day
// (producer.id.expiration.ms), and would then take the repetition for a new batch.
const clearUpWithin = time.Hour

// Producer writes batches to one topic, each exactly once. It is safe for concurrent use: batches to different
// partitions travel side by side, those to one partition one after the other, in the order in which Produce was called.
type Producer struct {
	c     *Client
	topic string

	opening turn // guards session and parts
	session *session
	parts   int

	mu    sync.Mutex // guards lanes and dead
	lanes map[int]*lane
	dead  error
}

// lane is the producer's state for one partition; turn guards the rest.
type lane struct {
	turn

	sequence int32
	end      int64 // the offset after the last batch that was acknowledged
}

// Producer returns a new producer for a topic. Each has an identity of its own, which it asks the brokers for at its
// first batch.
func (c *Client) Producer(topic string) *Producer {
	return &Producer{c: c, topic: topic, opening: newTurn(), lanes: make(map[int]*lane)}
}

// Produce writes records to a partition as one atomic batch, acknowledged by all in-sync replicas, and returns the
// offset of the first. It waits for brokers that are down and repeats what is unclear until ctx ends.
//
// An error for which OutcomeUnknown is false means that nothing was written: the topic or partition is missing
// (NoTopic), the batch is too large (ErrTooLarge), the broker rejects it, or ctx ended before anything was sent. The
// Producer can be used further. If OutcomeUnknown is true the batch may have been written, or arrive yet, and the
// Producer is used up: after an hour of unclear tries, when ctx ends in the middle of one, when the brokers' memory of
// this producer does not match (sequence out of order, producer unknown or fenced), or when the batch was acknowledged
// below what this producer wrote before (LostLog): the log has lost that, or is another one of the same name.
func (p *Producer) Produce(ctx context.Context, partition int, records []Record) (base int64, err error) {
	if len(records) == 0 {
		return 0, fmt.Errorf("writing to %s/%d: no records", p.topic, partition)
	}
	s, err := p.open(ctx, partition)
	if err != nil {
		return 0, err
	}
	l := p.lane(partition)
	if err := l.take(ctx); err != nil {
		return 0, fmt.Errorf("waiting to write to %s/%d: %w", p.topic, partition, err)
	}
	defer l.give()
	if err := p.usable(); err != nil {
		return 0, err
	}
	d := delivery{p: p, partition: partition, records: len(records)}
	d.batch, d.unpacked = encodeBatch(records, s, l.sequence, time.Now())
	if base, err = d.run(ctx); err != nil {
		return base, err
	}
	if base < l.end {
		err = d.unknown(fmt.Errorf("%s/%d: a batch got offset %d, and the one before ended at %d: %w", p.topic,
			partition, base, l.end, errLostEnd))
		p.kill(err)
		return 0, err
	}
	l.sequence, l.end = advance(l.sequence, len(records)), base+int64(len(records))
	return base, nil
}

// open returns the producer's identity, asking for it at the first batch, and checks that the partition exists.
func (p *Producer) open(ctx context.Context, partition int) (session, error) {
	if err := p.opening.take(ctx); err != nil {
		return session{}, fmt.Errorf("waiting to write to %s/%d: %w", p.topic, partition, err)
	}
	defer p.opening.give()
	if p.session == nil {
		if err := p.c.do(ctx, "opening a producer for "+p.topic, p.introduce); err != nil {
			return session{}, err
		}
	}
	if partition < 0 || partition >= p.parts {
		return session{}, noTopic(p.topic, partition, p.parts)
	}
	return *p.session, nil
}

func (p *Producer) introduce(ctx context.Context) error {
	parts, err := p.c.describe(ctx, p.topic)
	if err != nil {
		return err
	}
	// -1 asks for a fresh identity; 0 would be taken for the identity 0.
	answer, err := p.c.kafka.InitProducerID(ctx, &kafka.InitProducerIDRequest{ProducerID: -1, ProducerEpoch: -1})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return err
	}
	p.session, p.parts = &session{id: int64(answer.Producer.ProducerID), epoch: int16(answer.Producer.ProducerEpoch)},
		parts
	return nil
}

func (p *Producer) lane(partition int) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.lanes[partition]
	if !ok {
		l = &lane{turn: newTurn()}
		p.lanes[partition] = l
	}
	return l
}

func (p *Producer) usable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return fmt.Errorf("nothing was written, this producer is used up: %w", p.dead)
	}
	return nil
}

func (p *Producer) kill(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead == nil {
		p.dead = err
	}
}

// delivery is one batch on its way.
type delivery struct {
	p         *Producer
	partition int
	records   int
	batch     []byte
	unpacked  int // its bytes before compression
	// when the first try ended whose outcome is unknown; zero while every try is known to have failed
	unclear time.Time
}

func (d *delivery) run(ctx context.Context) (int64, error) {
	c, topic := d.p.c, d.p.topic
	if d.unpacked > c.cfg.MaxBytes {
		return 0, fmt.Errorf("%s: a batch of %d records has %d bytes, %w, which is %d (write less at once, or raise "+
			"it and the topic's max.message.bytes)", topic, d.records, d.unpacked, ErrTooLarge, c.cfg.MaxBytes)
	}
	start := time.Now()
	base, err := d.repeat(ctx)
	switch {
	case err == nil:
		c.metrics.produceTime.WithLabelValues(topic).Observe(time.Since(start).Seconds())
	case OutcomeUnknown(err):
		d.p.kill(err)
	}
	return base, err
}

// repeat sends the same bytes until their outcome is known.
func (d *delivery) repeat(ctx context.Context) (int64, error) {
	t := d.p.c.try(fmt.Sprintf("writing to %s/%d", d.p.topic, d.partition))
	defer t.end()
	for t.Next(ctx) {
		base, err := d.send(ctx)
		switch outcomeOf(err) {
		case written:
			t.succeeded()
			return base, nil
		case rejected:
			return 0, d.verdict(err)
		case lost:
			return 0, d.unknown(err)
		case unclear:
			if d.unclear.IsZero() {
				d.unclear = time.Now()
			}
		case refused:
		}
		if !d.unclear.IsZero() && time.Since(d.unclear) > clearUpWithin {
			return 0, d.unknown(fmt.Errorf("still unclear after %s: %w", clearUpWithin, err))
		}
		t.Failed(err)
	}
	return 0, d.verdict(t.Err(ctx))
}

// verdict is what a last error means for the batch: nothing was written, unless an earlier try is still unclear.
func (d *delivery) verdict(err error) error {
	if !d.unclear.IsZero() {
		return d.unknown(err)
	}
	return fmt.Errorf("writing to %s/%d: nothing was written: %w", d.p.topic, d.partition, err)
}

func (d *delivery) unknown(cause error) error {
	return &unknownOutcomeError{topic: d.p.topic, partition: d.partition, records: d.records, cause: cause}
}

func (d *delivery) send(ctx context.Context) (int64, error) {
	answer, err := d.p.c.kafka.RawProduce(ctx, &kafka.RawProduceRequest{
		Topic:        d.p.topic,
		Partition:    d.partition,
		RequiredAcks: kafka.RequireAll,
		RawRecords:   protocol.RawRecordSet{Reader: bytes.NewReader(d.batch)},
	})
	if err != nil {
		return 0, err
	}
	if answer.Error == nil && answer.BaseOffset < 0 {
		return 0, errors.New("the broker acknowledged without an offset")
	}
	return answer.BaseOffset, answer.Error
}

// turn is a lock that a context can end the wait for.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

// KeepDispute writes disputes of endpoints to a keeper's dead letter topic, one at a time.
func (c *Client) KeepDispute(chainID uint64) func(ctx context.Context, endpoint, why string, dispute []byte) error {
	return func(ctx context.Context, endpoint, why string, dispute []byte) error {
		letter := wire.Disputed(endpoint, why, dispute)
		_, err := c.Producer(wire.DeadLetterTopic(chainID)).Produce(ctx, 0, []Record{letter})
		return err
	}
}
