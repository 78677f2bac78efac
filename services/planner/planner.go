package planner

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/risk/liquidation"
	"perpkeeper/pkg/service"
)

// Planner finds jobs and publishes them.
type Planner struct {
	cfg     Config
	log     zerolog.Logger
	metrics *Metrics
	client  *bus.Client
	store   Store
	shards  *shards
	loads   loader
	quotes  *quotes
	book    *book
	finder  *finder
	// publish publishes jobs to senders. After an error it is unknown which were published; all may be published again.
	publish func(ctx context.Context, jobs []job.Job) error
	live    *live
	rules   due.Rules
	modes   *liquidation.Modes

	mode       liquidation.Mode
	work       worklist
	sweeping   sweeping
	risky      []chain.Hash       // positions that the last sweep found near their liquidation
	noted      notes              // failures that have been told
	stateReady *service.Condition // whether snapshots are had
	jobsReady  *service.Condition // whether jobs can be published
}

// Store is the queries that the planner makes of Postgres.
type Store interface {
	// Changes returns what became of the state since the last look: of these partitions, and of everybody's markets,
	// measures and parameters.
	Changes(ctx context.Context, partitions []int, since pg.Seen) (pg.Changes, error)
	// Load gives all rows of these partitions and of everybody's, one by one, and the look to go on from.
	Load(ctx context.Context, partitions []int, take func(partition int, row perp.Row) error) (pg.Changes, error)
	// Parameters looks them up by their keys; those that are not known are left out.
	Parameters(ctx context.Context, keys []chain.Hash) ([]perp.Parameter, error)
	// MostProfitable lists positions of a side by what they have gained.
	MostProfitable(ctx context.Context, g pg.Gainers) ([]perp.Position, error)
}

// Start acquires what the planner needs and hands its members to the shell.
func Start(sh *service.Shell, cfg Config) error {
	collectOften()
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

	p := New(cfg, sh.Log, NewMetrics(sh.Registry), client, db)
	p.stateReady, p.jobsReady = sh.Ready("state"), sh.Ready("jobs")
	sh.Watch("kafka", func(context.Context) error { return client.Health() })
	sh.Watch("postgres", db.Health)
	sh.Go("plan", func(ctx context.Context) error { return p.Run(ctx, db) })
	startDelayed(sh, cfg, db)
	return nil
}

// collectOften has garbage collected when the heap has grown by half, and not only when it has doubled: millions of
// positions are most of it, and what holds no pointers is not looked at. Whoever has set GOGC is obeyed.
func collectOften() {
	const byDefault = 100
	if set := debug.SetGCPercent(byDefault / 2); set != byDefault {
		debug.SetGCPercent(set)
	}
}

// New wires a planner. It connects to nothing yet.
func New(cfg Config, log zerolog.Logger, metrics *Metrics, client *bus.Client, store Store) *Planner {
	p := newPlanner(cfg, log, metrics, store)
	p.client, p.publish = client, newPublisher(client, cfg.Keeper).publish
	return p
}

// newPlanner wires all but the wire.
func newPlanner(cfg Config, log zerolog.Logger, metrics *Metrics, store Store) *Planner {
	p := &Planner{
		cfg: cfg, log: log, metrics: metrics, store: store, shards: newShards(), work: newWorklist(),
		loads:  newLoader(),
		quotes: newQuotes(passOver(log)), live: newLive(),
		book:  newBook(cfg.Liquidation.Armed()),
		modes: liquidation.NewModes(cfg.Liquidation.VolatilityWindow),
		rules: due.Rules{
			FireRatio:  cfg.Liquidation.FireRatio.Factor,
			FrozenRole: cfg.Keeper.FrozenRole, AdlRole: cfg.Planner.AdlRole,
			CancelExpired: cfg.Planner.CancelExpired,
		},
	}
	p.finder = &finder{
		book: p.book, dueTimes: newDueTimes(p.quotes), triggers: newTriggerReports(p.quotes.board),
		spacing: newSpacing(cfg.Liquidation.Spacing.Factor),
		others:  newRemotePositions(store),
		live:    p.live, signers: cfg.signers(), unexecuted: unexecuted{metrics: metrics, log: log},
	}
	return p
}

// Run waits for a database and topics it can work with, and then plans until ctx ends. It fails when readers are
// switched to a state of another layout: planners of the build that can read it take the partitions.
func (p *Planner) Run(ctx context.Context, db *pg.DB) error {
	if err := p.awaitParts(ctx, db); err != nil {
		return err
	}
	id := p.cfg.Keeper.ChainID
	changes := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return db.WatchLayout(ctx) })
	group.Go(func() error { return listen(ctx, db, changes) })
	group.Go(func() error {
		return p.shards.join(ctx, p.client, fmt.Sprintf("perp.%d.planner", id), wire.LogTopic(id))
	})
	group.Go(func() error { return p.quotes.follow(ctx, p.client, wire.PriceTopic(id)) })
	group.Go(func() error { return p.plan(ctx, changes) })
	group.Go(func() error { return p.passBy(ctx, db.OutSigners) })
	return group.Wait()
}

// outPause is how often it is asked which signers are out.
const outPause = 2 * time.Second

// passBy has jobs routed past signers that are out, until ctx ends; what waits for them moves with the next sweep.
// While nobody says who is out all stays as it was.
func (p *Planner) passBy(ctx context.Context, ask func(context.Context) ([]chain.Address, error)) error {
	for {
		if out, err := ask(ctx); err == nil {
			p.finder.out.Store(&out)
		} else if ctx.Err() == nil {
			p.log.Debug().Err(err).Msg("which signers are out is asked again")
		}
		if !retry.Sleep(ctx, outPause) {
			return context.Cause(ctx)
		}
	}
}

// awaitParts waits for Postgres and Kafka, however long they are away, and fails at once where they are there and
// cannot serve: a schema of another version, a missing topic, another number of partitions.
func (p *Planner) awaitParts(ctx context.Context, db *pg.DB) error {
	policy := retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) {
			p.stateReady.Fail(err.Error())
		}}
	if err := db.AwaitSchema(ctx, policy); err != nil {
		return err
	}
	keeper := p.cfg.Keeper
	topics := keeper.Named(wire.LogTopic(keeper.ChainID), wire.PriceTopic(keeper.ChainID),
		wire.JobTopic(keeper.ChainID))
	if err := p.client.Verify(ctx, bus.Specs(topics...)); err != nil {
		return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
	}
	return nil
}

// listen turns notifications of the database into signals.
func listen(ctx context.Context, db *pg.DB, changes chan<- struct{}) error {
	listener := db.Listener()
	defer listener.Close()
	for {
		if err := listener.WaitChange(ctx); err != nil {
			return fmt.Errorf("waiting for changes of state: %w", err)
		}
		select {
		case changes <- struct{}{}:
		default:
		}
	}
}
