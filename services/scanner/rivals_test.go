package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// gate holds batches back while it is closed, and lets them through whatever became of the scanner that wrote them: as
// a broker's queue may.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // not nil while the gate is closed
	held   int
}

func (g *gate) on(s *Scanner) {
	next := s.newProducer
	s.newProducer = func(topic string) producer { return gated{g, next(topic)} }
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
}

func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

type gated struct {
	*gate
	producer
}

func (p gated) Produce(ctx context.Context, partition int, records []wire.Record) (int64, error) {
	p.mu.Lock()
	closed := p.closed
	if closed != nil {
		p.held++
	}
	p.mu.Unlock()
	if closed != nil {
		<-closed
	}
	return p.producer.Produce(context.WithoutCancel(ctx), partition, records)
}

func standing(s *running) bool { return testutil.ToFloat64(s.metrics.standingBy) == 1 }

// A newer scanner takes over; what the older one still writes counts for nothing; it stands by, and goes on when the
// newer one is gone.
func TestZombie(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	cfg := testConfig(d, k.Addr())
	cfg.Scanner.TakeoverAfter = 5 * time.Second // far longer than a healthy scanner needs for a block
	door := &gate{}
	older := start(t, cfg, k, door.on)
	d.trade(1)
	settle(t, k, tr)

	door.close()
	d.trade(2)
	eventually(t, "the older scanner is about to write", func() error {
		if door.waiting() < partitions {
			return errNotYet
		}
		return nil
	})
	newer := start(t, cfg, k)
	settle(t, k, tr) // by the newer one alone
	door.open()
	eventually(t, "the older scanner stands by, its last batches ignored", func() error {
		all, err := compare(t.Context(), k, tr, 1)
		if err != nil || !standing(older) {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		for p, a := range all {
			if a.stale == 0 {
				return fmt.Errorf("partition %d holds no stale record", p)
			}
		}
		return nil
	})
	d.trade(3)
	settle(t, k, tr)
	if !standing(older) || standing(newer) {
		t.Errorf("standing by: older %t, newer %t", standing(older), standing(newer))
	}

	_ = newer.stop()
	d.trade(4)
	settle(t, k, tr) // the older one again
	if standing(older) {
		t.Error("the older scanner publishes and says it stands by")
	}
}

// faster writes another scanner's claim immediately before a scanner's own.
type faster struct {
	kafka *kafka
	claim wire.Epoch
	once  sync.Once
}

func (f *faster) on(s *Scanner) {
	next := s.newProducer
	s.newProducer = func(topic string) producer { return overtaken{f, next(topic)} }
}

type overtaken struct {
	*faster
	producer
}

func (p overtaken) Produce(ctx context.Context, partition int, records []wire.Record) (int64, error) {
	var err error
	p.once.Do(func() {
		var record wire.Record
		if record, err = wire.Encode(nil, p.claim, p.claim.Number, filterVersion); err == nil {
			_, err = p.kafka.client.Producer(wire.LogTopic(1337)).Produce(ctx, 0, []wire.Record{record})
		}
	})
	if err != nil {
		return 0, err
	}
	return p.producer.Produce(ctx, partition, records)
}

// The first claim of an epoch wins, and a higher one wins over both. The loser publishes nothing, and claims again only
// when nobody else publishes.
func TestLosesTheClaim(t *testing.T) {
	for name, number := range map[string]uint64{"the same epoch": 1, "a higher epoch": 5} {
		t.Run(name, func(t *testing.T) {
			d, k := startDevnet(t), startKafka(t)
			tr := newTruth(d)
			d.trade(1)
			cfg := testConfig(d, k.Addr())
			cfg.Scanner.TakeoverAfter = 500 * time.Millisecond
			rival := &faster{kafka: k, claim: wire.Epoch{Number: number, Owner: "rival"}}
			start(t, cfg, k, rival.on)
			want := []uint64{number, number + 1}
			if number == 1 {
				want = []uint64{1, 1, 2}
			}
			eventually(t, "the loser claims the silent topic", func() error {
				all, err := compare(t.Context(), k, tr, 1)
				if err != nil || !slices.Equal(all[0].epochs, want) {
					return fmt.Errorf("%w: epochs %v, %w", errNotYet, all[0].epochs, err)
				}
				return nil
			})
		})
	}
}

// Of scanners that start at once, one publishes and the others stand by.
func TestManyStartAtOnce(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	cfg := testConfig(d, k.Addr())
	d.trade(1)
	var all []*running
	for range 4 {
		all = append(all, start(t, cfg, k))
	}
	eventually(t, "all but one stand by", func() error {
		count := 0
		for _, s := range all {
			if standing(s) {
				count++
			}
		}
		if count != len(all)-1 {
			return fmt.Errorf("%d stand by", count)
		}
		return nil
	})
	d.trade(2)
	settle(t, k, tr)
}

// The rule of the take-over, in virtual time: the topic's tip has not moved for the configured time, and the chain's
// head was above it all the while.
func TestTakeoverRule(t *testing.T) {
	const patience, second = 30 * time.Second, time.Second
	type event struct {
		at        time.Duration
		head, tip uint64 // one of them
	}
	for name, tt := range map[string]struct {
		events []event
		want   time.Duration // 0 = never
	}{
		"nothing happens":              {nil, 0},
		"the chain stands still":       {[]event{{at: 1, tip: 7}, {at: 2, head: 7}}, 0},
		"the node is behind the topic": {[]event{{at: 1, tip: 7}, {at: 2, head: 5}}, 0},
		"the topic is silent":          {[]event{{at: 1 * second, tip: 7}, {at: 2 * second, head: 8}}, 32 * second},
		"it is silent while heads come": {[]event{{at: 0, tip: 7}, {at: 5 * second, head: 8},
			{at: 20 * second, head: 20}}, 35 * second},
		"it moves, slowly": {[]event{{at: 0, tip: 7}, {at: 1, head: 99}, {at: 25 * second, tip: 8},
			{at: 50 * second, tip: 9}}, 80 * second},
		"the topic has halted": {[]event{{at: 0, tip: (&stream{halted: &wire.Halt{}}).newest()},
			{at: 1, head: 99}, {at: 60 * second, head: 200}}, 0},
		"an empty topic stays empty": {[]event{{at: 10 * second, head: 3}}, 40 * second},
		"the chain goes on after a silence": {
			[]event{{at: 0, tip: 7}, {at: 1, head: 7}, {at: 100 * second, head: 8}, {at: 110 * second, tip: 8}}, 0,
		},
		"and the topic does not": {[]event{{at: 0, tip: 7}, {at: 1, head: 7}, {at: 100 * second, head: 8}},
			130 * second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics := newMetrics(prometheus.NewRegistry())
				s := &Scanner{status: newStatus(metrics), metrics: metrics, log: zerolog.Nop()}
				s.cfg.Scanner.TakeoverAfter = patience
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				heads, tips, began := make(chan chain.BlockRef), make(chan uint64), time.Now()
				go func() {
					for _, e := range tt.events {
						<-time.After(time.Until(began.Add(e.at)))
						if e.head > 0 {
							heads <- chain.BlockRef{Number: e.head, Hash: chain.Hash{byte(e.head)}}
						} else {
							tips <- e.tip
						}
					}
				}()
				err := s.awaitSilence(ctx, heads, tips)
				if took := time.Since(began); errors.Is(err, errSilent) != (tt.want > 0) || tt.want > 0 &&
					took.Truncate(time.Second) != tt.want {
					t.Errorf("after %s: %v; want %s", took, err, tt.want)
				}
			})
		})
	}
}
