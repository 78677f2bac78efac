package evidence

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/embedded/broker"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/wire"
)

// readUpTo hands on up to when all partitions have been read.
type readUpTo chan uint64

func (readUpTo) Published(job.Job)              {}
func (readUpTo) Executed([]execution.Execution) {}
func (r readUpTo) Read(blockMs uint64)          { r <- blockMs }

// publish writes the ends of blocks to the log topic.
func publish(t *testing.T, client *bus.Client, topic string, numbers ...uint64) {
	t.Helper()
	var records []bus.Record
	for _, n := range numbers {
		r, err := wire.Encode([]byte("key"), wire.BlockEnd{Block: blockAt(n), Verified: true}, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	if _, err := client.Producer(topic).Produce(t.Context(), 0, records); err != nil {
		t.Fatal(err)
	}
}

// A log topic that is made anew ends a reader, and not the evidence: the next one reads the new topic, and people are
// told of both.
func TestEvidenceOutlivesItsTopic(t *testing.T) {
	b, err := broker.Start(broker.Config{MinSessionTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	dialed := bus.DefaultConfig()
	dialed.Brokers, dialed.SessionTimeout, dialed.HeartbeatInterval = []string{b.Addr()}, 3*time.Second,
		50*time.Millisecond
	client, err := bus.New(dialed, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	keeper := wire.Config{ChainID: 7, LogPartitions: 1, JobPartitions: 1}
	topic, topics := wire.LogTopic(7), bus.Specs(keeper.Topics()...)
	if err := client.Ensure(t.Context(), topics); err != nil {
		t.Fatal(err)
	}
	publish(t, client, topic, 1, 2, 3)

	const pause = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	read, told := make(readUpTo, 100), make(chan error, 1000)
	var running sync.WaitGroup
	running.Go(func() {
		err := Follow(ctx, pause, func() *Reader { return NewReader(client, keeper, endings{}, read, nil) },
			func(why error) { told <- why })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	defer running.Wait()
	defer cancel()
	until := func(n uint64) {
		t.Helper()
		for at := range read {
			if at == blockAt(n).TimeMs {
				return
			}
		}
	}
	until(3)
	if why := <-told; why != nil {
		t.Fatalf("it has read the past, and says %v", why)
	}
	if err := errors.Join(b.DeleteTopic(topic), client.Ensure(t.Context(), topics)); err != nil {
		t.Fatal(err)
	}
	if why := <-told; why == nil {
		t.Error("nobody is told that the topic is another")
	}
	publish(t, client, topic, 11)
	until(11)
	for why := range told {
		if why == nil {
			return
		}
	}
}
