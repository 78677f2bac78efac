package statevm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/rig"
)

// instance is a running statevm.
type instance struct {
	*Statevm
	stop func() error // ends it and returns what Run returned

	mu      sync.Mutex
	reasons map[string]string
}

// launch runs a statevm as Start would, without a shell.
func (s *site) launch(cfg Config) *instance {
	s.t.Helper()
	i := &instance{reasons: map[string]string{}}
	i.Statevm = New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), rig.Kafka(s.t, cfg.Kafka),
		s.open(cfg.Postgres.URL.Reveal()))
	i.schema, i.partitions = i.reportTo("postgres"), newBoard(i.reportTo("partitions"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	i.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(hangGuard):
			s.t.Error("statevm does not stop")
			return nil
		}
	})
	s.t.Cleanup(func() { _ = i.stop() })
	return i
}

func (i *instance) reportTo(condition string) func(string) {
	return func(reason string) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.reasons[condition] = reason
	}
}

// reason is why a condition does not hold.
func (i *instance) reason(condition string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reasons[condition]
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick, hang := time.NewTicker(5*time.Millisecond), time.After(hangGuard)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-hang:
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// caughtUp reports whether the database stands where the exchange does.
func (s *site) caughtUp(x *exchange) bool {
	at, err := s.db.Progress(context.Background())
	return err == nil && at.Level() && at.Watermark == x.tip()
}

// next is the offset of the first record that a partition has not committed.
func (s *site) next(t *testing.T, partition int) int64 {
	t.Helper()
	at, err := s.db.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range at.Offsets {
		if o.Partition == partition {
			return o.Next
		}
	}
	return 0
}

// PIPE-7: instances share the partitions; when one joins, leaves or dies, the others take over, and nothing is lost or
// applied twice.
func TestInstancesShareThePartitions(t *testing.T) {
	s := newSite(t)
	x, _, _ := s.play(t, 21, 4)
	cfg := s.config(4, s.dbURL)
	churn := func() {
		for range 5 {
			x.grow(3)
		}
		x.reorg(3)
		x.grow(2)
	}
	first := s.launch(cfg)
	churn()
	eventually(t, "one instance catches up", func() bool { return s.caughtUp(x) })
	x.agree(s.db, 1)

	second := s.launch(cfg)
	eventually(t, "both have partitions", func() bool { return owned(first) == 2 && owned(second) == 2 })
	churn()
	eventually(t, "two instances catch up", func() bool { return s.caughtUp(x) })
	x.agree(s.db, 1)

	churn()
	if err := first.stop(); err != nil && !strings.Contains(err.Error(), "canceled") {
		t.Errorf("the first ended with %v", err)
	}
	churn()
	eventually(t, "the other catches up alone", func() bool { return s.caughtUp(x) })
	x.agree(s.db, 1)
	if n := owned(second); n != 4 {
		t.Errorf("the last instance reports %d partitions", n)
	}
}

// owned counts the partitions an instance reports about.
func owned(i *instance) int { return testutil.CollectAndCount(i.metrics.block) }

// PIPE-8: filling another generation from the topic's beginning, beside the live one, gives the same state.
func TestSecondGenerationIsTheSame(t *testing.T) {
	s := newSite(t)
	x, _, _ := s.play(t, 22, 2)
	cfg := s.config(2, s.dbURL)
	s.launch(cfg)
	for range 10 {
		x.grow(3)
	}
	x.reorg(4)
	x.grow(3)
	eventually(t, "the first generation is filled", func() bool { return s.caughtUp(x) })
	if number, err := s.db.AddGeneration(t.Context(), nil); err != nil || number != 2 {
		t.Fatal(number, err)
	}
	eventually(t, "the second generation is filled", func() bool {
		_, at, err := pgtest.ChecksumsIn(context.Background(), s.db, 2)
		return err == nil && at.Level() && at.Watermark == x.tip()
	})
	x.agree(s.db, 1)
	x.agree(s.db, 2)
}

// A generation of a log topic of another number of partitions is left alone, also the active one: it ends nobody, who
// reads it is told, and another one is filled beside it.
func TestGenerationOfOtherPartitionsIsLeftAlone(t *testing.T) {
	s := newSite(t)
	x, _, _ := s.play(t, 41, 2)
	claim(t, s.db, 1, 0, 3)
	number, err := s.db.AddGeneration(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	i := s.launch(s.config(2, s.dbURL))
	x.grow(3)
	eventually(t, "the other generation is filled", func() bool {
		at, err := s.db.ProgressOf(context.Background(), number)
		return err == nil && at.Level() && at.Watermark == x.tip()
	})
	x.agree(s.db, number)
	if !i.givenUp(t.Context(), 1) || i.givenUp(t.Context(), number) {
		t.Errorf("generation 1 is not left alone, or generation %d is", number)
	}
	if why := i.reason("partitions"); !strings.Contains(why, "log topic of 3 partitions") {
		t.Errorf("readiness says %q", why)
	}
}

// An operator who drops a generation takes its tables away under the hands of whoever fills it: that is no halt of a
// partition.
func TestDroppedGenerationIsGivenUp(t *testing.T) {
	s := newSite(t)
	x, _, _ := s.play(t, 31, 1)
	if _, err := s.db.AddGeneration(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	i := s.launch(s.config(1, s.dbURL))
	x.grow(2)
	eventually(t, "both generations are filled", func() bool { return s.caughtUp(x) && owned(i) == 2 })
	if i.givenUp(t.Context(), 1) || i.givenUp(t.Context(), 2) {
		t.Error("a generation that is kept up to date counts as given up")
	}
	if err := s.db.DropGeneration(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if !i.givenUp(t.Context(), 2) || i.givenUp(t.Context(), 1) {
		t.Error("generation 2 was dropped, and generation 1 was not")
	}
	x.grow(2)
	eventually(t, "the other one goes on alone", func() bool { return s.caughtUp(x) && owned(i) == 1 })
}

// What is refused is tried again, and said where readers use it: a generation's group, also one whose refusal fell into
// a time without a database, and a partition's rows.
func TestRefusedIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name, group, says string
		away              bool // the database, when the refusal comes
		before            func(s *site) error
	}{
		{"a new generation", "perp.1.statevm.g2", "Group Authorization Failed", false, func(s *site) error {
			number, err := s.db.AddGeneration(t.Context(), nil)
			return errors.Join(err, s.db.Switch(t.Context(), number, "a test"))
		}},
		{"the active generation", "perp.1.statevm.g1", "Group Authorization Failed", true,
			func(*site) error { return nil }},
		{"its rows", "", "halted", false, func(s *site) error {
			pgtest.Tamper(t, s.dbURL,
				"ALTER TABLE state_g1.kept_block ADD CONSTRAINT closed CHECK (false) NOT VALID")
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			x, _, _ := s.play(t, 21, 2)
			proxy := pgtest.NewProxy(t, s.dbURL)
			i := s.launch(s.config(2, proxy.URL()))
			x.grow(3)
			eventually(t, "generation 1 is filled", func() bool { return s.caughtUp(x) })
			if c.away {
				proxy.Refuse(true)
				proxy.Cut()
				eventually(t, "it says that the database is away", func() bool { return i.reason("postgres") != "" })
			}
			lift := s.broker.Refuse(c.group)
			if err := c.before(s); err != nil {
				t.Fatal(err)
			}
			x.grow(3)
			eventually(t, "it says so", func() bool { return strings.Contains(i.reason("partitions"), c.says) })
			lift()
			proxy.Refuse(false)
			if c.group == "" {
				pgtest.Tamper(t, s.dbURL, "ALTER TABLE state_g1.kept_block DROP CONSTRAINT closed")
			}
			eventually(t, "it goes on", func() bool { return s.caughtUp(x) && i.reason("partitions") == "" })
			active, err := s.db.ActiveGeneration(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			x.agree(s.db, active)
		})
	}
}

// A partition that cannot go on says why and leaves the others alone; the process stays.
func TestHaltedPartitionIsSaid(t *testing.T) {
	s := newSite(t)
	x, topic, _ := s.play(t, 23, 2)
	i := s.launch(s.config(2, s.dbURL))
	x.grow(4)
	eventually(t, "both partitions follow", func() bool { return s.caughtUp(x) })

	// Partition 0 gets an event that nobody knows, partition 1 the same block without it.
	l := teleported(chain.Address{})
	end := x.child()
	l.Block, l.BlockHash, l.TxHash = end.Block.Number, end.Block.Hash, chain.Hash{5}
	x.publish(end, []routed{{message: wire.Log{Log: l}}})
	x.blocks = append(x.blocks, end.Block)
	x.grow(0)
	eventually(t, "partition 0 says why it halted", func() bool {
		reason := i.reason("partitions")
		return strings.Contains(reason, "partition 0: halted") && strings.Contains(reason, "PositionTeleported") &&
			strings.Contains(reason, l.TxHash.Hex())
	})
	if testutil.ToFloat64(i.metrics.halted.WithLabelValues("1", "0")) != 1 {
		t.Error("the metric does not say so")
	}
	_, last, err := s.client.Bounds(t.Context(), topic, 1)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "partition 1 goes on",
		func() bool { return s.next(t, 1) == last })
	if strings.Contains(i.reason("partitions"), "partition 1") {
		t.Errorf("partition 1 complains: %s", i.reason("partitions"))
	}
}

// The end of a block says which of its ancestors is final, in partitions with records of the block and without.
func TestFinalityComesWithTheNextBlock(t *testing.T) {
	s := newSite(t)
	x, _, _ := s.play(t, 31, 2)
	s.launch(s.config(2, s.dbURL))
	x.grow(2)
	for i := range 6 {
		x.grow(2)
		x.finalizeByNext(1)
		x.grow(i % 2)
		eventually(t, "both partitions follow", func() bool { return s.caughtUp(x) })
		at, err := s.db.Progress(t.Context())
		if err != nil || at.Finalized().Hash != x.final.Hash || at.Finalized().Number+2 != x.tip().Number {
			t.Errorf("planner and sender see %+v, %v", at, err)
		}
	}
}

// What the scanner found out about broken finality stays known over restarts; the process waits for the reorg that the
// operator accepts, and goes on.
func TestBrokenFinalityIsSaidAndLifted(t *testing.T) {
	s := newSite(t)
	x, _, _ := s.play(t, 28, 2)
	first := s.launch(s.config(2, s.dbURL))
	for range 6 {
		x.grow(2)
	}
	x.finalize(1)
	eventually(t, "both partitions follow", func() bool { return s.caughtUp(x) })
	says := func(i *instance) func() bool {
		return func() bool {
			reason := i.reason("partitions")
			return strings.Contains(reason, "partition 0: halted: ") &&
				strings.Contains(reason, "partition 1: halted: ") && strings.Contains(reason, "the node says")
		}
	}
	var second *instance
	x.breakPromise(4, func() {
		eventually(t, "it says so", says(first))
		_ = first.stop()
		second = s.launch(s.config(2, s.dbURL))
		eventually(t, "its successor says so", says(second))
		at, err := s.db.Progress(t.Context())
		if err != nil || at.Level() || !strings.Contains(at.Halted, "the node says otherwise") {
			t.Errorf("planner and sender see %+v, %v", at, err)
		}
	})
	x.grow(2)
	eventually(t, "it goes on", func() bool { return s.caughtUp(x) && second.reason("partitions") == "" })
	x.agree(s.db, 1)
	at, err := s.db.Progress(t.Context())
	if err != nil || at.Halted != "" || at.Finalized().Hash != x.final.Hash {
		t.Errorf("planner and sender see %+v, %v", at, err)
	}
	if testutil.ToFloat64(second.metrics.halted.WithLabelValues("1", "0")) != 0 {
		t.Error("the metric still says halted")
	}
}

// A record nobody understands goes to the dead letters with all that is known about it, and only once, whoever meets it
// again.
func TestDeadLetterIsSentOnce(t *testing.T) {
	s := newSite(t)
	x, topic, _ := s.play(t, 29, 1)
	letters := wire.DeadLetterTopic(s.chain.Load())
	if err := s.client.Ensure(t.Context(), []bus.TopicSpec{{Name: letters, Partitions: 1}}); err != nil {
		t.Fatal(err)
	}
	x.grow(2)
	known := gmxtest.Event(emitter, "OrderCreated", perp.Fields{"key": x.unique()})
	x.logs(known, teleported(chain.Address{}))
	_, end, err := s.client.Bounds(t.Context(), topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		i := s.launch(s.config(1, s.dbURL))
		eventually(t, "it says what it does not understand",
			func() bool { return strings.Contains(i.reason("partitions"), "PositionTeleported") })
		eventually(t, "the letter is sent", func() bool {
			_, n, err := s.client.Bounds(t.Context(), letters, 0)
			return err == nil && n > 0
		})
		_ = i.stop()
	}
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	r, err := s.client.Reader(letters, 0, 0).Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, h := range r.Headers {
		got[h.Key] = string(h.Value)
	}
	from := got["source.partition"] + ":" + got["source.offset"]
	if string(r.Key) != topic || got["t"] != "LOG" || from != fmt.Sprint("0:", end-2) ||
		!strings.Contains(got["error"], "PositionTeleported") {
		t.Errorf("the letter is %q %v", r.Key, got)
	}
	if _, n, err := s.client.Bounds(t.Context(), letters, 0); err != nil || n != 1 {
		t.Errorf("%d letters, %v", n, err)
	}
}

// Postgres down: statevm waits, says for what, and goes on.
func TestPostgresAway(t *testing.T) {
	s := newSite(t)
	proxy := pgtest.NewProxy(t, s.dbURL)
	x, _, _ := s.play(t, 24, 2)
	proxy.Refuse(true)
	i := s.launch(s.config(2, proxy.URL()))
	eventually(t, "it says that the database is away", func() bool { return i.reason("postgres") != "" })
	proxy.Refuse(false)
	x.grow(3)
	eventually(t, "it starts", func() bool { return s.caughtUp(x) })

	proxy.Refuse(true)
	x.grow(3)
	eventually(t, "the partitions say that the database is away", func() bool { return i.reason("partitions") != "" })
	proxy.Refuse(false)
	eventually(t, "it goes on", func() bool { return s.caughtUp(x) && i.reason("partitions") == "" })
	x.agree(s.db, 1)
}

// Kafka down: the same.
func TestKafkaAway(t *testing.T) {
	s := newSite(t)
	own := broker.Config{DataDir: t.TempDir(), MinSessionTimeout: time.Millisecond}
	b, err := broker.Start(own)
	if err != nil {
		t.Fatal(err)
	}
	own.Listen = b.Addrs()
	t.Cleanup(func() { b.Close() })
	s.kafka.Brokers = own.Listen
	s.client = rig.Kafka(s.t, s.kafka)
	x, topic, _ := s.play(t, 25, 2)
	i := s.launch(s.config(2, s.dbURL))
	x.grow(3)
	eventually(t, "it starts", func() bool { return s.caughtUp(x) })

	b.Close()
	eventually(t, "it says that kafka is away", func() bool { return i.client.Health() != nil })
	if b, err = broker.Start(own); err != nil {
		t.Fatal(err)
	}
	x.write = toTopic(t, s.client.Producer(topic))
	x.grow(3)
	eventually(t, "it goes on", func() bool { return s.caughtUp(x) && i.client.Health() == nil })
	x.agree(s.db, 1)
}

// What a wait cannot mend ends the process with one clear line.
func TestCannotServe(t *testing.T) {
	s := newSite(t)
	_, topic, _ := s.play(t, 26, 2)
	for name, test := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no such topic": {func(c *Config) { c.Keeper.ChainID = 99 }, "perp.99.log.v1 does not exist"},
		"other number": {func(c *Config) { c.Keeper.LogPartitions = 4 },
			topic + " has 2 partitions and must have 4"},
		"no schema": {func(c *Config) { *c = s.config(2, pgtest.EmptyURL(t)) }, "no keeper schema"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := s.config(2, s.dbURL)
			test.change(&cfg)
			i := New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), rig.Kafka(s.t, cfg.Kafka),
				s.open(cfg.Postgres.URL.Reveal()))
			ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
			defer cancel()
			err := i.Run(ctx)
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want it to say %q", err, test.says)
			}
		})
	}
}

// A process that finds its partition taken while its group still assigns it here takes it back after a while.
func TestTakesBackWhatTheGroupAssigns(t *testing.T) {
	s := newSite(t)
	s.kafka.SessionTimeout = 300 * time.Millisecond
	x, _, _ := s.play(t, 27, 1)
	i := s.launch(s.config(1, s.dbURL))
	x.grow(2)
	eventually(t, "it follows", func() bool { return s.caughtUp(x) })
	claim(t, s.db, 1, 0, 1)
	x.grow(2)
	eventually(t, "it notices", func() bool { return testutil.ToFloat64(i.metrics.lost.WithLabelValues("1", "0")) > 0 })
	eventually(t, "it goes on", func() bool { return s.caughtUp(x) })
	x.agree(s.db, 1)
}
