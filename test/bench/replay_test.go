package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/statevm"
	"perpkeeper/test/rig"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	chainID     = 56
	rangeBlocks = 50
	patience    = 5 * time.Minute // a hang guard, no measure
)

// long reports whether there is time for longer runs.
func long() bool { return os.Getenv("KEEPER_LONG") != "" }

// bench is a broker with a topic, and a database.
type bench struct {
	tb     testing.TB
	kafka  *broker.Broker
	cfg    statevm.Config
	client *bus.Client
	db     *pg.DB
	url    string
	venue  *venue
}

func newBench(tb testing.TB, partitions int) *bench {
	tb.Helper()
	kafka := rig.Broker(tb)
	n := &bench{tb: tb, kafka: kafka, cfg: statevm.DefaultConfig(), url: pgtest.URL(tb)}
	n.cfg.Kafka.Brokers, n.cfg.Keeper.ChainID, n.cfg.Keeper.LogPartitions = kafka.Addrs(), chainID, partitions
	n.cfg.Postgres.URL = secret.MustURL(n.url)
	n.client, n.db = rig.Kafka(tb, n.cfg.Kafka), rig.PostgresOf(tb, n.cfg.Postgres)
	rig.Ensure(tb, n.client, wire.Config{ChainID: chainID, LogPartitions: partitions}.Named(wire.LogTopic(chainID))...)
	n.venue = newVenue(tb, n.client.Producer(wire.LogTopic(chainID)), partitions)
	n.venue.everywhere(wire.Epoch{Number: 1, Owner: "bench"}) // nothing counts before
	return n
}

// run starts a statevm, which fills every generation there is.
func (n *bench) run() (stop func()) {
	s := statevm.New(n.cfg, zerolog.Nop(), statevm.NewMetrics(prometheus.NewRegistry()), n.client, n.db)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

// await returns when a generation has reached the venue's last block.
func (n *bench) await(generation int) {
	n.tb.Helper()
	l := n.db.Listener()
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		at, err := n.db.ProgressOf(ctx, generation)
		if err != nil {
			n.tb.Fatal(err)
		}
		if at.Watermark.Hash == n.venue.tip.Hash && at.Level() {
			return
		}
		if err := l.WaitChange(ctx); err != nil {
			n.tb.Fatalf("still at %+v: %v", at, err)
		}
	}
}

// PIPE-8: how fast the log topic becomes state, without a journal (ranges) and with one (blocks).
func BenchmarkReplay(b *testing.B) {
	for _, partitions := range []int{1, 4} {
		for _, undo := range []bool{false, true} {
			b.Run(fmt.Sprintf("undo=%t/partitions=%d", undo, partitions),
				func(b *testing.B) { replay(b, partitions, undo) })
		}
	}
}

func replay(b *testing.B, partitions int, undo bool) {
	n, blocks := newBench(b, partitions), 4000
	if long() {
		blocks = 20_000
	}
	for range blocks / rangeBlocks {
		before := n.venue.tip
		var span []block
		for range rangeBlocks {
			span = append(span, n.venue.next())
		}
		if !undo {
			n.venue.publishRange(before, span)
			continue
		}
		for _, block := range span {
			n.venue.publish(block)
		}
	}
	stop, generation := n.run(), 1
	n.await(generation) // the active one is level, and what is measured is the others
	stop()
	var took, own, database time.Duration
	for b.Loop() {
		b.StopTimer()
		var err error
		if generation, err = n.db.AddGeneration(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began, ownBefore, databaseBefore := time.Now(), ownCPU(), databaseCPU()
		stop := n.run()
		n.await(generation)
		took, own, database = took+time.Since(began), own+ownCPU()-ownBefore, database+databaseCPU()-databaseBefore
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	runs := time.Duration(generation - 1)
	rate := float64(n.venue.logs) / (took / runs).Seconds()
	events := float64(n.venue.logs) * float64(runs)
	b.ReportMetric(rate, "events/s")
	b.ReportMetric(float64(own.Microseconds())/events, "own-cpu-us/event")
	b.ReportMetric(float64(database.Microseconds())/events, "db-cpu-us/event")
	b.ReportMetric(0, "ns/op")
}
