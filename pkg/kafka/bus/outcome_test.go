package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	produceapi "github.com/segmentio/kafka-go/protocol/produce"
	"github.com/segmentio/kafka-go/protocol/rawproduce"
	"pgregory.net/rapid"
)

func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want outcome
	}{
		{nil, written},
		{&dialError{err: errors.New("refused")}, refused},
		{fmt.Errorf("routing: %w", rawproduce.NewError(protocol.NewErrNoLeader("t", 0))), refused},
		{kafka.NotLeaderForPartition, refused},
		{kafka.NotEnoughReplicas, refused},
		{kafka.UnknownTopicOrPartition, refused},
		{kafka.NotEnoughReplicasAfterAppend, unclear},
		{kafka.RequestTimedOut, unclear},
		{kafka.KafkaStorageError, unclear},
		{kafka.Unknown, unclear},
		{kafka.Error(999), unclear},
		{io.ErrUnexpectedEOF, unclear},
		{context.DeadlineExceeded, unclear},
		{context.Canceled, unclear},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, unclear},
		{kafka.MessageSizeTooLarge, rejected},
		{fmt.Errorf("wrapped: %w", kafka.TopicAuthorizationFailed), rejected},
		{kafka.InvalidTimestamp, rejected},
		{kafka.OutOfOrderSequenceNumber, lost},
		{kafka.DuplicateSequenceNumber, lost},
		{kafka.UnknownProducerId, lost},
		{kafka.InvalidProducerEpoch, lost},
		{kafka.ProducerFenced, lost},
		{kafka.InvalidProducerIDMapping, lost},
	} {
		if got := outcomeOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// answers is a broker's side of produce requests: the answers in their order, the last one for ever. It keeps the
// batches it was sent.
type answers struct {
	results []error
	sent    [][]byte
}

func (a *answers) RoundTrip(ctx context.Context, _ net.Addr, request kafka.Request) (kafka.Response, error) {
	raw, err := io.ReadAll(request.(*rawproduce.Request).Topics[0].Partitions[0].RecordSet.Reader)
	if err != nil {
		return nil, err
	}
	a.sent = append(a.sent, raw)
	result := a.results[min(len(a.sent), len(a.results))-1]
	code, isCode := errors.AsType[kafka.Error](result)
	if result != nil && !isCode {
		return nil, result
	}
	partition := produceapi.ResponsePartition{ErrorCode: int16(code), BaseOffset: 42}
	return &produceapi.Response{
		Topics: []produceapi.ResponseTopic{{Partitions: []produceapi.ResponsePartition{partition}}}}, nil
}

// producerOf returns a producer that is past its introduction.
func producerOf(a *answers) *Producer {
	c := &Client{cfg: DefaultConfig(), log: zerolog.Nop(), metrics: NewMetrics(prometheus.NewRegistry())}
	c.kafka = &kafka.Client{Addr: kafka.TCP("127.0.0.1:9"), Transport: a}
	p := c.Producer("topic")
	p.session, p.parts = &session{id: 1}, 1
	return p
}

// Whatever a broker answers to the tries of one batch: every try carries the same bytes, "not written" is only said
// when every try is known to have failed, and only a producer of which everything is known goes on.
func TestEveryTryIsTheSameAndTheVerdictIsTrue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		retried := rapid.SliceOfN(rapid.SampledFrom([]error{
			// known to have failed
			&dialError{err: errors.New("refused")}, kafka.NotLeaderForPartition, kafka.NotEnoughReplicas,
			io.ErrUnexpectedEOF, kafka.RequestTimedOut, kafka.NotEnoughReplicasAfterAppend, // unknown
		}), 0, 5).Draw(rt, "retried")
		last := rapid.SampledFrom([]error{nil, kafka.MessageSizeTooLarge, kafka.OutOfOrderSequenceNumber,
			kafka.InvalidProducerEpoch}).Draw(rt, "last")
		maybe := outcomeOf(last) == lost
		for _, err := range retried {
			maybe = maybe || outcomeOf(err) == unclear
		}
		synctest.Test(t, func(t *testing.T) {
			a := &answers{results: append(retried, last)}
			p := producerOf(a)
			base, err := p.Produce(t.Context(), 0, valued("x"))
			for i, raw := range a.sent {
				if !bytes.Equal(raw, a.sent[0]) {
					rt.Fatalf("try %d differs", i)
				}
			}
			if len(a.sent) != len(retried)+1 {
				rt.Fatalf("%d tries, want %d", len(a.sent), len(retried)+1)
			}
			switch {
			case last == nil && (err != nil || base != 42 || p.lane(0).sequence != 1):
				rt.Fatalf("written: offset %d, sequence %d, %v", base, p.lane(0).sequence, err)
			case last != nil && (OutcomeUnknown(err) != maybe || !errors.Is(err, last)):
				rt.Fatalf("got %v, want unknown: %t", err, maybe)
			case last != nil && (p.usable() == nil) == maybe:
				rt.Fatalf("the producer is usable: %v", p.usable())
			case last != nil && p.lane(0).sequence != 0:
				rt.Fatal("a batch that was not written used up a sequence number")
			}
		})
	})
}

// A batch that stays unclear is given up long before brokers forget the producer.
func TestUnclearIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := producerOf(&answers{results: []error{kafka.RequestTimedOut}})
		start := time.Now()
		_, err := p.Produce(t.Context(), 0, valued("x"))
		if took := time.Since(start); !OutcomeUnknown(err) || took < time.Hour || took > 2*time.Hour {
			t.Fatalf("after %s: %v", took, err)
		}
	})
}

// A batch that is known not to be written is tried for as long as the caller likes.
func TestRefusedIsTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{results: []error{kafka.NotEnoughReplicas}}
		p := producerOf(a)
		ctx, cancel := context.WithTimeout(t.Context(), 3*clearUpWithin)
		defer cancel()
		if _, err := p.Produce(ctx, 0, valued("x")); OutcomeUnknown(err) || !errors.Is(err, context.DeadlineExceeded) ||
			!errors.Is(err, kafka.NotEnoughReplicas) {
			t.Fatal(err)
		}
		a.results = []error{nil}
		if _, err := p.Produce(t.Context(), 0, valued("x")); err != nil {
			t.Fatal(err)
		}
	})
}

// Batches to one partition keep the order of the calls and never travel together; a waiting call ends with its context.
func TestOneInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := producerOf(&answers{results: []error{nil}})
		l := p.lane(0)
		if err := l.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Produce(ctx, 0, valued("x")); OutcomeUnknown(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		l.give()
		if _, err := p.Produce(t.Context(), 0, valued("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Produce(t.Context(), 1, valued("x")); !NoTopic(err) {
			t.Fatalf("a partition that is not there: %v", err)
		}
	})
}
