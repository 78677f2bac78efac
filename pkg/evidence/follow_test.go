package evidence

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/embedded/broker"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// listener hands on what a reader reports: up to when all partitions have been read, and what was executed, by key.
type listener struct {
	readMs   chan uint64
	executed chan chain.Hash
}

func (listener) Published(job.Job) {}

func (l listener) Executed(found []execution.Execution) {
	for _, e := range found {
		l.executed <- e.Key
	}
}

func (l listener) Read(blockMs uint64) { l.readMs <- blockMs }

// publish writes to the log topic.
func publish(t *testing.T, client *bus.Client, topic string, messages ...wire.Message) {
	t.Helper()
	var records []bus.Record
	for _, m := range messages {
		r, err := wire.Encode([]byte("key"), m, 1, 0)
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
// told of both. What was executed before stands in the new topic as well, and is not evidence a second time.
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
	past := slices.Concat(executing(blockAt(1)), executing(blockAt(2), 1), executing(blockAt(3)))
	publish(t, client, topic, past...)

	pauses := retry.Policy{Initial: 20 * time.Millisecond, Max: 20 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	to, told := listener{make(chan uint64, 100), make(chan chain.Hash, 100)}, make(chan error, 1000)
	var running sync.WaitGroup
	running.Go(func() {
		err := Follow(ctx, pauses, func() *Reader { return NewReader(client, keeper, endings{}, to, nil) },
			func(why error) { told <- why })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	defer running.Wait()
	defer cancel()
	until := func(n uint64) {
		t.Helper()
		for at := range to.readMs {
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
	publish(t, client, topic, append(past, executing(blockAt(11), 2)...)...)
	until(11)
	for why := range told {
		if why == nil {
			break
		}
	}
	var executed []chain.Hash
	for len(to.executed) > 0 { // they are reported before the block is said to be read
		executed = append(executed, <-to.executed)
	}
	if want := []chain.Hash{{1}, {2}}; !slices.Equal(executed, want) {
		t.Errorf("reported %v, want %v", executed, want)
	}
}

// What ends each reading is read anew in pauses that grow up to a bound, and begin anew once a reading has read the
// past. People are told of each.
func TestPausesBetweenReadingsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pauses := retry.Policy{Initial: 10 * time.Second, Max: time.Minute,
			Jitter: func(bound time.Duration) time.Duration { return bound }}
		began, unreadable := time.Now(), errors.New("a record of no kind")
		var at []time.Duration
		var told []error
		err := repeat(ctx, pauses, func(_ context.Context, standing func()) error {
			switch at = append(at, time.Since(began)); len(at) {
			case 6:
				standing()
				standing()
			case 9:
				cancel()
			}
			return unreadable
		}, func(why error) { told = append(told, why) })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 130 * time.Second,
			190 * time.Second, 200 * time.Second, 210 * time.Second, 230 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("read at %v, want %v", at, want)
		}
		why := append(slices.Repeat([]error{unreadable}, 5), nil, unreadable, unreadable, unreadable)
		if !slices.Equal(told, why) {
			t.Errorf("told %v, want %v", told, why)
		}
	})
}
