package statevm

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/rig"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// hangGuard ends a test that would otherwise wait for ever. It is no measure of anything.
const hangGuard = 2 * time.Minute

// site is a broker and a database, on which exchanges play.
type site struct {
	t      *testing.T
	broker *broker.Broker
	kafka  bus.Config
	client *bus.Client
	dbURL  string
	db     *pg.DB
	chain  atomic.Uint64 // the last chain id given away
}

func newSite(t *testing.T) *site {
	t.Helper()
	b := rig.Broker(t)
	s := &site{t: t, broker: b, kafka: bus.DefaultConfig(), dbURL: pgtest.URL(t)}
	s.kafka.Brokers, s.kafka.SessionTimeout = b.Addrs(), 3*time.Second
	s.client, s.db = rig.Kafka(s.t, s.kafka), s.open(s.dbURL)
	return s
}

func (s *site) open(url string) *pg.DB {
	s.t.Helper()
	return rig.PostgresOf(s.t, s.config(1, url).Postgres)
}

// config is that of a statevm at this site.
func (s *site) config(partitions int, databaseURL string) Config {
	cfg := DefaultConfig()
	cfg.Kafka, cfg.Keeper.ChainID, cfg.Keeper.LogPartitions = s.kafka, s.chain.Load(), partitions
	if err := cfg.Postgres.URL.UnmarshalText([]byte(databaseURL)); err != nil {
		s.t.Fatal(err)
	}
	cfg.Postgres.ConnectTimeout = 2 * time.Second
	return cfg
}

// play starts an exchange of its own, on a topic and a generation of its own.
func (s *site) play(t failer, seed uint64, partitions int) (x *exchange, topic string, generation int) {
	t.Helper()
	id := s.chain.Add(1)
	topic, generation = s.ensure(t, s.client, id, partitions), int(id)
	if generation > 1 {
		if err := s.db.CreateGeneration(context.Background(), generation); err != nil {
			t.Fatal(err)
		}
	}
	return newExchange(t, seed, partitions, toTopic(t, s.client.Producer(topic))), topic, generation
}

// claim takes a partition through a database connection.
func claim(t failer, db *pg.DB, generation, partition, partitions int) *pg.Partition {
	t.Helper()
	p, err := db.Claim(context.Background(), pg.ClaimRequest{Generation: generation, Partition: partition,
		Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newFollower follows a partition without a group.
func (s *site) newFollower(p *pg.Partition, topic string) *follower {
	return &follower{
		log: zerolog.Nop(), metrics: NewMetrics(prometheus.NewRegistry()).of(1, p.Offset().Partition),
		decoder: gmx.NewDecoder(emitter).For(p.Offset().Partition), limit: 50,
		ready: func(string) {}, partition: p,
		open: func(offset int64) *bus.Reader { return s.client.Reader(topic, p.Offset().Partition, offset) },
		bounds: func(ctx context.Context) (first, end int64, err error) {
			return s.client.Bounds(ctx, topic, p.Offset().Partition)
		},
	}
}

// catchUp follows every partition to its present end.
func (s *site) catchUp(t failer, db *pg.DB, topic string, generation, partitions int) {
	t.Helper()
	for i := range partitions {
		if err := s.follow(t, claim(t, db, generation, i, partitions), topic); err != nil {
			t.Fatalf("partition %d: %v", i, err)
		}
	}
}

// follow brings one partition to its present end, or to a halt.
func (s *site) follow(t failer, p *pg.Partition, topic string) error {
	t.Helper()
	return s.drive(t, s.newFollower(p, topic), topic)
}

// drive has a follower bring its partition to the present end, or to a halt.
func (s *site) drive(t failer, f *follower, topic string) error {
	t.Helper()
	p := f.partition
	_, end, err := s.client.Bounds(context.Background(), topic, p.Offset().Partition)
	if err != nil {
		t.Fatal(err)
	}
	if p.Offset().Next >= end {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangGuard)
	defer cancel()
	f.ready = func(string) {
		if p.Offset().Next >= end {
			cancel()
		}
	}
	err = f.run(ctx)
	if errors.Is(err, context.Canceled) && p.Offset().Next >= end {
		return nil
	}
	return err
}

// agree compares the database with the fold.
func (x *exchange) agree(db *pg.DB, generation int) {
	x.t.Helper()
	want, err := pgtest.ChecksumsOf(x.book)
	if err != nil {
		x.t.Fatal(err)
	}
	got, at, err := pgtest.ChecksumsIn(context.Background(), db, generation)
	if err != nil {
		x.t.Fatal(err)
	}
	if tip := at.Watermark; !at.Level() || tip.Number != x.tip().Number || tip.Hash != x.tip().Hash {
		x.t.Fatalf("the watermark is %+v (level: %t), the chain stands at %+v", at.Watermark, at.Level(), x.tip())
	}
	if !maps.Equal(got, want) {
		for _, table := range perp.Tables() {
			if got[table] != want[table] {
				x.t.Fatalf("table %s differs from the fold at block %d (the fold has %v)", table, x.tip().Number,
					x.countRows())
			}
		}
	}
}
