package evidence

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/test/rig"
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

// publish writes to the log topic, under an epoch.
func publish(t *testing.T, client *bus.Client, topic string, epoch uint64, messages ...wire.Message) {
	t.Helper()
	var records []bus.Record
	for _, m := range messages {
		r, err := wire.Encode([]byte("key"), m, epoch, 0)
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
	b, client, keeper := start(t)
	topic, topics := wire.LogTopic(7), bus.Specs(keeper.Topics()...)
	past := slices.Concat([]wire.Message{wire.Epoch{Number: 1}}, executing(blockAt(1)), executing(blockAt(2), 1),
		executing(blockAt(3)))
	publish(t, client, topic, 1, past...)
	to, told := listener{make(chan uint64, 100), make(chan chain.Hash, 100)}, make(chan error, 1000)
	follow(t, told, func() *Reader { return NewReader(client, keeper, endings{}, to, nil) })
	to.until(3)
	if why := <-told; why != nil {
		t.Fatalf("it has read the past, and says %v", why)
	}
	if err := errors.Join(b.DeleteTopic(topic), client.Ensure(t.Context(), topics)); err != nil {
		t.Fatal(err)
	}
	if why := <-told; why == nil {
		t.Error("nobody is told that the topic is another")
	}
	publish(t, client, topic, 1, append(past, executing(blockAt(11), 2)...)...)
	to.until(11)
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

// A reading that began behind the claim, and meets an epoch that was never claimed, ends. The next one looks for the
// claim as far back as it stands, and reads on by it, although it begins with the other epoch.
func TestEvidenceFindsTheClaim(t *testing.T) {
	_, client, keeper := start(t)
	topic := wire.LogTopic(7)
	publish(t, client, topic, 5, append(executing(blockAt(1)), wire.Epoch{Number: 5})...)
	to, told := listener{make(chan uint64, 1000), make(chan chain.Hash, 1000)}, make(chan error, 1000)
	n := uint64(1)
	read := func() { // a reading leaves out the block in which it begins
		for len(to.readMs) == 0 {
			n++
			publish(t, client, topic, 5, executing(blockAt(n))...)
		}
	}
	for ; n < 20; n++ { // so that a reading of the newest is none from the beginning on
		publish(t, client, topic, 5, executing(blockAt(n+1))...)
	}
	follow(t, told, func() *Reader {
		r := NewReader(client, keeper, endings{}, to, nil)
		r.hindsight = 0
		return r
	})
	read()
	<-told
	publish(t, client, topic, 9, executing(blockAt(n+1))...)
	if why := <-told; !errors.Is(why, errAmbiguousEpoch) {
		t.Fatalf("it says %v", why)
	}
	for len(to.readMs) > 0 {
		<-to.readMs
	}
	read()
}

// start is a broker with a keeper's topics.
func start(t *testing.T) (*broker.Broker, *bus.Client, wire.Config) {
	t.Helper()
	b := rig.Broker(t)
	dialed := bus.DefaultConfig()
	dialed.Brokers, dialed.SessionTimeout = []string{b.Addr()}, 3*time.Second
	client := rig.Kafka(t, dialed)
	keeper := wire.Config{ChainID: 7, LogPartitions: 1, JobPartitions: 1}
	rig.Ensure(t, client, keeper.Topics()...)
	return b, client, keeper
}

// follow follows until the test ends.
func follow(t *testing.T, told chan<- error, next func() *Reader) {
	t.Helper()
	pauses := retry.Policy{Initial: 20 * time.Millisecond, Max: 20 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := Follow(ctx, pauses, next, func(why error) { told <- why }); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// until waits until all partitions have been read up to a block.
func (l listener) until(n uint64) {
	for at := range l.readMs {
		if at == blockAt(n).TimeMs {
			return
		}
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
		err := repeat(ctx, pauses, func(_ context.Context, caughtUp func()) error {
			switch at = append(at, time.Since(began)); len(at) {
			case 6:
				caughtUp()
				caughtUp()
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
