package statevm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
)

// Statevm applies the log topic to the database.
type Statevm struct {
	cfg     Config
	log     zerolog.Logger
	metrics *Metrics
	client  *bus.Client
	db      *pg.DB
	decoder *gmx.Decoder
	node    string // names this process in claims, for people

	// What readiness is made of; each is given the reason, or nothing when all is well.
	partitions *board
	schema     func(reason string)
}

// Start acquires what statevm needs and hands its work to the shell.
func Start(sh *service.Shell, cfg Config) error {
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("preparing the kafka client: %w", err)
	}
	sh.OnStop("kafka", func(context.Context) error { client.Close(); return nil })
	db, err := pg.Open(sh.Context(), cfg.Postgres, sh.Name)
	if err != nil {
		return fmt.Errorf("opening postgres: %w", err)
	}
	sh.OnStop("postgres", func(context.Context) error { db.Close(); return nil })

	s := New(cfg, sh.Log, NewMetrics(sh.Registry), client, db)
	sh.Watch("kafka", func(context.Context) error { return client.Health() })
	sh.Watch("postgres", db.Health)
	s.node = service.Node(sh.Context())
	s.schema, s.partitions = reportTo(sh.Ready("schema")), newBoard(reportTo(sh.Ready("partitions")))
	sh.Go("apply", s.Run)
	return nil
}

// reportTo reports to a condition.
func reportTo(c *service.Condition) func(string) {
	return func(reason string) {
		if reason == "" {
			c.OK()
			return
		}
		c.Fail(reason)
	}
}

// New wires a statevm that reports readiness to nobody. It connects to nothing yet.
func New(cfg Config, log zerolog.Logger, metrics *Metrics, client *bus.Client, db *pg.DB) *Statevm {
	silent := func(string) {}
	return &Statevm{
		cfg: cfg, log: log, metrics: metrics, client: client, db: db, decoder: cfg.Venue.Decoder(),
		partitions: newBoard(silent), schema: silent,
	}
}

// Run waits for a database and a topic it can work with, and then applies the partitions that are assigned to this
// process until ctx ends. It fails where they are there and cannot serve: a schema of another version, a missing topic,
// another number of partitions.
func (s *Statevm) Run(ctx context.Context) error {
	if err := s.awaitParts(ctx); err != nil {
		return err
	}
	return s.supervise(ctx)
}

func (s *Statevm) awaitParts(ctx context.Context) error {
	policy := retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) { s.schema(err.Error()) }}
	if err := s.db.AwaitVersion(ctx, policy); err != nil {
		return err
	}
	s.schema("")
	keeper := s.cfg.Keeper
	if err := s.client.Verify(ctx, bus.Specs(keeper.Named(wire.LogTopic(keeper.ChainID))...)); err != nil {
		return fmt.Errorf("checking the log topic (keeperctl prepare creates a missing one): %w", err)
	}
	return nil
}

// join shares the partitions of a generation with the other instances. Each generation has a group of its own, and
// ready learns of it when this process is a member.
func (s *Statevm) join(ctx context.Context, generation int, ready func(string)) error {
	group := bus.GroupConfig{
		ID:       fmt.Sprintf("perp.%d.statevm.g%d", s.cfg.Keeper.ChainID, generation),
		Topic:    wire.LogTopic(s.cfg.Keeper.ChainID),
		OnAssign: func([]int) { ready("") },
	}
	return s.client.Join(ctx, group, func(ctx context.Context, c bus.Claim) error {
		return s.serve(ctx, generation, c)
	})
}

// serve applies one partition for the time of one claim.
func (s *Statevm) serve(ctx context.Context, generation int, c bus.Claim) error {
	log := s.log.With().Int("generation", generation).Int("partition", c.Partition).Logger()
	metrics := s.metrics.of(generation, c.Partition)
	ready := s.partitions.of(generation, fmt.Sprintf("partition %d", c.Partition))
	metrics.stuck(false)
	defer metrics.forget()
	defer ready("")
	tries := retry.New(retry.Policy{Initial: time.Second, Max: longestPause})
	for tries.Next(ctx) {
		p, err := s.claim(ctx, generation, c.Partition, ready)
		if err != nil {
			return err
		}
		f := &follower{
			log: log, metrics: metrics, decoder: s.decoder.For(c.Partition), limit: maxRecords,
			ready: ready, partition: p, own: s.ownKeys(c.Partition),
			open: func(offset int64) *bus.Reader {
				return s.client.Reader(wire.LogTopic(s.cfg.Keeper.ChainID), c.Partition, offset)
			},
			bounds: func(ctx context.Context) (first, end int64, err error) {
				return s.client.Bounds(ctx, wire.LogTopic(s.cfg.Keeper.ChainID), c.Partition)
			},
		}
		switch err := f.run(ctx); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case pg.NotOwner(err):
			metrics.fenced()
			ready(err.Error())
			log.Warn().Err(err).Msg("waiting for the group to say whose it is")
			retry.Sleep(ctx, 2*s.cfg.Kafka.SessionTimeout)
			tries.Reset()
		case s.givenUp(ctx, generation):
			<-ctx.Done() // supervise lets go of it
			return context.Cause(ctx)
		default:
			metrics.stuck(true)
			ready("halted: " + err.Error())
			log.Error().Err(err).Int64("offset", p.Offset().Next).Uint64("block", p.Offset().Tip.Number).
				Msg("partition halted")
			if err := s.bury(ctx, p, err); err != nil {
				log.Error().Err(err).Msg("the record that halted the partition is not in the dead letter topic")
			}
			if !pg.Refused(err) { // which an operator may mend: a right that is missing
				<-ctx.Done()
			}
		}
	}
	return context.Cause(ctx)
}

// ownKeys reports of a routing key whether its rows are a partition's.
func (s *Statevm) ownKeys(partition int) func(key chain.Hash) bool {
	return func(key chain.Hash) bool { return wire.Partition(key, s.cfg.Keeper.LogPartitions) == partition }
}

// givenUp reports whether a generation is no longer to be kept up to date: an operator drops it, and takes its tables
// away a moment after saying so.
func (s *Statevm) givenUp(ctx context.Context, generation int) bool {
	wanted, err := s.wanted(ctx)
	return err == nil && !wanted[generation]
}

// claim takes the partition, however long the database is away.
func (s *Statevm) claim(ctx context.Context, generation, partition int, ready func(string)) (p *pg.Partition,
	err error) {
	policy := retry.Policy{Initial: 50 * time.Millisecond, Max: 2 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) { ready(err.Error()) }}
	err = retry.Do(ctx, policy, func(ctx context.Context) error {
		p, err = s.db.Claim(ctx, pg.ClaimRequest{
			Generation: generation, Partition: partition, Partitions: s.cfg.Keeper.LogPartitions, Label: s.node,
		})
		if errors.Is(err, pg.ErrSchema) {
			return retry.Stop(err)
		}
		return err
	})
	return p, err
}
