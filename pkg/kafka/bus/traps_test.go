package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"perpkeeper/lab/embedded/broker"
)

// What follows is the library's own Writer and Reader, and why nothing here uses them. When one of these fails, the
// library has changed.

// The Writer's batches have no producer identity, so a batch whose reply is lost is written twice, and the caller is
// told that all is well.
func TestTrapWriterMakesCopies(t *testing.T) {
	b := embedded(t, broker.Config{})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	w := &kafka.Writer{Addr: kafka.TCP(b.Addrs()...), Topic: topic, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond}
	defer w.Close()
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.RequestTimedOut})
	if err := w.WriteMessages(guarded(t), kafka.Message{Value: []byte("once")}); err != nil {
		t.Fatal(err)
	}
	wantLog(t, c, topic, "once", "once")
}

// The Writer's zero value waits for nobody's acknowledgement.
func TestTrapWriterDefaultsToNoAcks(t *testing.T) {
	if acks := (&kafka.Writer{}).RequiredAcks; acks != kafka.RequireNone {
		t.Fatalf("the default is %s", acks)
	}
}

// The Reader goes over a hole in the log without an error.
func TestTrapReaderSkipsHoles(t *testing.T) {
	b := embedded(t, broker.Config{})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	produce(t, c.Producer(topic), "0", "1", "2", "3")
	if err := b.DeleteRecords(topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: b.Addrs(), Topic: topic, MaxWait: 10 * time.Millisecond})
	defer r.Close()
	if err := r.SetOffset(0); err != nil {
		t.Fatal(err)
	}
	m, err := r.ReadMessage(guarded(t))
	if err != nil || m.Offset != 2 {
		t.Fatalf("the reader at 0 went to %d: %v", m.Offset, err)
	}
}

// The Reader takes a start beyond the end for the future, and waits in silence.
func TestTrapReaderWaitsBeyondTheEnd(t *testing.T) {
	b := embedded(t, broker.Config{})
	topic := newTopic(t, connect(t, b.Addrs()))
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: b.Addrs(), Topic: topic, MaxWait: 10 * time.Millisecond})
	defer r.Close()
	if err := r.SetOffset(1000); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.ReadMessage(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

// The Reader panics over a setting.
func TestTrapReaderPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("a MinBytes without MaxBytes is taken")
		}
	}()
	kafka.NewReader(kafka.ReaderConfig{Brokers: []string{"127.0.0.1:1"}, Topic: "topic", MinBytes: 10})
}
