package bustest

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/kafka/bus"
)

// stream writes numbered batches to one partition and reads them back, while the cluster is disturbed.
type stream struct {
	s       *site
	topic   string
	client  *bus.Client
	written atomic.Int64 // records acknowledged
	read    atomic.Int64
	slowest atomic.Int64 // longest Produce, ns
	stop    func()
}

// batchSize of a stream's batches.
const batchSize = 3

func (s *site) stream() *stream {
	f := &stream{s: s, topic: s.topic(1), client: s.client()}
	stopping := make(chan struct{})
	ctx, cancel := context.WithCancel(s.ctx)
	var writing, reading sync.WaitGroup
	writing.Go(func() { f.write(stopping) })
	reading.Go(func() { f.readBack(ctx) })
	f.stop = sync.OnceFunc(func() {
		close(stopping)
		writing.Wait()
		s.eventually("the reader has everything", func() bool {
			return f.read.Load() == f.written.Load() ||
				s.Failed()
		})
		cancel()
		reading.Wait()
	})
	s.Cleanup(f.stop)
	s.eventually("records flow", func() bool { return f.read.Load() > 0 })
	return f
}

func (f *stream) write(stopping chan struct{}) {
	producer := f.client.Producer(f.topic)
	for {
		select {
		case <-stopping:
			return
		default:
		}
		start := time.Now()
		if _, err := producer.Produce(f.s.ctx, 0, numbered(int(f.written.Load()), batchSize)); err != nil {
			f.s.Errorf("writing: %v", err)
			return
		}
		f.written.Add(batchSize)
		f.slowest.Store(max(f.slowest.Load(), int64(time.Since(start))))
	}
}

func (f *stream) readBack(ctx context.Context) {
	r := f.client.Reader(f.topic, 0, 0)
	for {
		records, err := r.NextBatch(ctx, 1000)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.s.Errorf("reading: %v", err)
			return
		}
		for _, record := range records {
			if want := strconv.FormatInt(f.read.Load(), 10); string(record.Value) != want {
				f.s.Errorf("read %s where %s belongs", record.Value, want)
				return
			}
			f.read.Add(1)
		}
	}
}

// goesOn waits until n more batches have been written and read.
func (f *stream) goesOn(n int64) {
	f.s.Helper()
	from := f.written.Load()
	f.s.eventually("the stream goes on", func() bool {
		return f.s.Failed() || f.written.Load() >= from+n*batchSize && f.read.Load() >= from+n*batchSize
	})
}

// complete stops the stream and compares the log with what was acknowledged.
func (f *stream) complete() {
	f.s.Helper()
	f.stop()
	if f.s.Failed() {
		return
	}
	f.s.wantNumbers(f.s.witness().values(f.topic), int(f.written.Load()))
	f.s.must(f.client.Health())
	f.s.Logf("%d records: none twice, none missing; the slowest batch took %s", f.written.Load(),
		time.Duration(f.slowest.Load()))
}

// The brokers go away and come back: calls wait, Health says so, and everything goes on.
func restart(s *site) {
	if s.cluster.Stop == nil {
		s.Skip("this cluster cannot be stopped by a test")
	}
	s.outage(s.cluster.Stop)
}

// The brokers are killed in the middle of writes.
func crash(s *site) {
	if s.cluster.Crash == nil {
		s.Skip("this cluster cannot be killed by a test, or does not keep its promises when it is")
	}
	s.outage(s.cluster.Crash)
}

func (s *site) outage(stop func(testing.TB)) {
	s.Helper()
	f := s.stream()
	group, w := bus.GroupConfig{ID: s.name(), Topic: s.topic(2)}, newWatch()
	m := s.join(w, group, "member", nil)
	s.settled(w, map[*member]int{m: 2})
	for range 2 {
		f.goesOn(20)
		stop(s.T)
		s.eventually("Health speaks up", func() bool { return f.client.Health() != nil })
		s.cluster.Start(s.T)
		back := time.Now()
		f.goesOn(20)
		s.Logf("written and read again %s after the brokers' return", time.Since(back))
	}
	s.settled(w, map[*member]int{m: 2})
	m.leave()
	s.must(m.err)
	f.complete()
}

// A partition's leader changes under load.
func leaderMoves(s *site) {
	if s.cluster.MoveLeader == nil {
		s.Skip("needs a cluster of several brokers")
	}
	f := s.stream()
	for range 6 {
		f.goesOn(50)
		s.cluster.MoveLeader(s.T, f.topic, 0)
	}
	f.goesOn(50)
	f.complete()
}

// A partition's leader is killed under load.
func leaderDies(s *site) {
	if s.cluster.CrashLeader == nil {
		s.Skip("needs a cluster of several brokers that can be killed one by one")
	}
	f := s.stream()
	for range 2 {
		f.goesOn(50)
		restore := s.cluster.CrashLeader(s.T, f.topic, 0)
		killed := time.Now()
		f.goesOn(50)
		s.Logf("written and read again %s after the leader was killed", time.Since(killed))
		restore()
	}
	f.goesOn(50)
	f.complete()
}
