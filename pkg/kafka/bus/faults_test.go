package bus

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"perpkeeper/lab/embedded/broker"
)

// The broker answers with an error, before or after it has written the batch; the tries that follow make one copy of
// it.
func TestBrokerErrorsMakeNoCopies(t *testing.T) {
	for _, fault := range []*kerr.Error{kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotEnoughReplicas,
		kerr.NotLeaderForPartition} {
		t.Run(fault.Message, func(t *testing.T) {
			b := embedded(t, broker.Config{})
			c := connect(t, b.Addrs())
			topic := newTopic(t, c)
			p := c.Producer(topic)
			produce(t, p, "0")
			handle := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: fault, Count: 3})
			produce(t, p, "1", "2")
			produce(t, p, "3")
			if handle.Hits() != 3 {
				t.Fatalf("%d faults were met, want 3", handle.Hits())
			}
			wantLog(t, c, topic, "0", "1", "2", "3")
		})
	}
}

// A broker that forbids writing is obeyed at once.
func TestForbiddenIsRejected(t *testing.T) {
	b := embedded(t, broker.Config{})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	p := c.Producer(topic)
	produce(t, p, "0")
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.TopicAuthorizationFailed})
	if _, err := p.Produce(guarded(t), 0, valued("x")); OutcomeUnknown(err) ||
		!errors.Is(err, kafka.TopicAuthorizationFailed) {
		t.Fatalf("got %v", err)
	}
	produce(t, p, "1")
	wantLog(t, c, topic, "0", "1")
}

// Every produce request asks for the acknowledgement of all replicas and names its partition, and every batch has a
// producer.
func TestProduceRequestsAskForAllAcks(t *testing.T) {
	b := embedded(t, broker.Config{})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	var wrong atomic.Int64
	handle := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Count: -1, Observe: true,
		When: func(request kmsg.Request) bool {
			p := request.(*kmsg.ProduceRequest)
			var batch kmsg.RecordBatch
			err := batch.ReadFrom(p.Topics[0].Partitions[0].Records)
			if err != nil || p.Acks != -1 || p.TransactionID != nil || batch.ProducerID < 0 ||
				batch.ProducerEpoch < 0 || batch.FirstSequence < 0 {
				wrong.Add(1)
			}
			return true
		}})
	p := c.Producer(topic)
	for range 3 {
		produce(t, p, "x", "y")
	}
	if handle.Hits() != 3 || wrong.Load() != 0 {
		t.Fatalf("%d requests, %d wrong ones", handle.Hits(), wrong.Load())
	}
}

// Members ask for the session timeout that was configured, not for the library's 30 s.
func TestMembersAskForTheirSessionTimeout(t *testing.T) {
	b := embedded(t, broker.Config{})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	var session, rebalance atomic.Int64
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Count: -1, Observe: true,
		When: func(request kmsg.Request) bool {
			j := request.(*kmsg.JoinGroupRequest)
			session.Store(int64(j.SessionTimeoutMillis))
			rebalance.Store(int64(j.RebalanceTimeoutMillis))
			return true
		}})
	ctx, cancel := context.WithCancel(guarded(t))
	if err := c.Join(ctx, GroupConfig{ID: topic, Topic: topic},
		func(ctx context.Context, _ Claim) error { cancel(); return ctx.Err() }); err != nil {
		t.Fatal(err)
	}
	if session.Load() != 6000 || rebalance.Load() != 6000 {
		t.Fatalf("session %d ms, rebalance %d ms", session.Load(), rebalance.Load())
	}
}

// An offset that is refused though it is there, as a deposed leader may do, is asked for again.
func TestRefusedOffsetIsAskedForAgain(t *testing.T) {
	b := embedded(t, broker.Config{})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	produce(t, c.Producer(topic), "0", "1")
	handle := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.OffsetOutOfRange, Count: 3})
	wantLog(t, c, topic, "0", "1")
	if handle.Hits() != 3 {
		t.Fatalf("%d faults were met, want 3", handle.Hits())
	}
}

// What a client starts ends with it.
func TestCloseLeavesNothingBehind(t *testing.T) {
	b := embedded(t, broker.Config{})
	before := goleak.IgnoreCurrent()
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	produce(t, c.Producer(topic), "0")
	wantLog(t, c, topic, "0")
	ctx, cancel := context.WithCancel(guarded(t))
	if err := c.Join(ctx, GroupConfig{ID: topic, Topic: topic},
		func(ctx context.Context, _ Claim) error { cancel(); return nil }); err != nil {
		t.Fatal(err)
	}
	c.Close()
	goleak.VerifyNone(t, before)
}
