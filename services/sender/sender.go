package sender

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/retention"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/tier/evidence"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
	"perpkeeper/services/sender/preflight"
	"perpkeeper/services/sender/shadow"
	"perpkeeper/services/sender/turns"
)

// Sender turns the jobs of its partitions into transactions of its signers.
type Sender struct {
	cfg     Config
	log     zerolog.Logger
	metrics *Metrics
	owner   lease.Owner
	keys    []signer.Signer

	outside
	clock       func() time.Time // compared with itself alone
	headTracker *headtrack.Tracker
	quotes      *preflight.Quotes
	turns       *turns.Tracker
	preflight   *preflight.Preflight // made, as the next, when the rest is there
	manager     *txmanager.Manager
	shadow      *shadow.Sender // of a keeper without keys, which has no manager; nil for others

	unreadable *unreadable
	notices    notices
}

// outside is what a sender works with: the brokers, the nodes and the database.
type outside struct {
	client  *bus.Client
	db      *pg.DB
	node    node
	venue   *gmx.Follower
	state   preflight.State // of the chain; only the chain closes a job
	leases  leases
	nonces  nonce.Store
	intents txm.Store
	session txstore.Leases // by what other processes can tell that this one lives
	checks  *checklog.Log  // what is said of attempts before they get nonces; nil where nobody is to read it
	// results begins to publish, for one lease term, what has ended and what was given up.
	results func() (ended, givenUp txmanager.Publisher)
}

// node is what the sender asks of the chain.
type node interface {
	preflight.Node
	txmanager.Node
	Heads(ctx context.Context) <-chan chain.BlockRef
}

// leases also make signers known.
type leases interface {
	lease.Store
	Register(ctx context.Context, signer chain.Address, chainID uint64) error
}

// Start acquires what the sender needs and hands its members to the shell.
func Start(sh *service.Shell, cfg Config) error {
	if cfg.Tier.Monitor {
		sh.Log.Warn().Msg("this keeper never sends (tier.monitor): its console watches the others")
		sh.Go("rest", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		return nil
	}
	cfg = cfg.asShadow()
	keys, err := openKeys(cfg)
	if err != nil {
		return err
	}
	if err := notPeers(cfg.Tier, keys); err != nil {
		return err
	}
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("preparing the kafka client: %w", err)
	}
	sh.OnStop("kafka", func(context.Context) error { client.Close(); return nil })
	db, err := pg.Open(sh.Context(), cfg.database(), sh.Name)
	if err != nil {
		return fmt.Errorf("opening postgres: %w", err)
	}
	sh.OnStop("postgres", func(context.Context) error { db.Close(); return nil })
	node, err := evm.Dial(sh.Context(), cfg.Keeper.ChainID, cfg.Chain, sh.Log, evm.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("connecting to the chain: %w", err)
	}
	sh.OnStop("chain", func(context.Context) error { node.Close(); return nil })
	sh.Ready("chain").Note(node.OneWord())
	sh.Handle("GET /status", node.Page())
	sh.Go("disputes", func(ctx context.Context) error {
		return node.KeepDisputes(ctx, client.KeepDispute(cfg.Keeper.ChainID))
	})

	metrics := NewMetrics(sh.Registry)
	cfg.Sender.Node = cmp.Or(cfg.Sender.Node, service.Node(sh.Context()))
	s := New(cfg, sh.Log, metrics, keys, client, db, node)
	sh.Watch("kafka", func(context.Context) error { return client.Health() })
	sh.Watch("chain", func(context.Context) error { return node.Health() })
	sh.Watch("postgres", db.Health)
	sh.Watch("gate", s.gate().Healthy)
	sh.Watch("venue", func(context.Context) error { return s.venue.Healthy(executed...) })
	sh.Watch("work", s.notices.healthy)
	if cfg.Sender.Mode == Shadow {
		s.shadow = s.newShadow(db.Shadow())
		sh.Go("shadow", s.runShadow)
		return nil
	}
	sh.Go("send", s.Run)
	sh.Go("archive", retention.New(cfg.Retention, txstore.NewArchive(db), metrics.archive, sh.Log).Run)
	return nil
}

// executed are the kinds of job that every venue has.
var executed = []job.Kind{job.Order, job.Liquidation, job.Deposit, job.Withdrawal}

// openKeys opens the keys of the configuration. A shadow has none, whatever the configuration names.
func openKeys(cfg Config) ([]signer.Signer, error) {
	if cfg.Sender.Mode == Shadow {
		return nil, nil
	}
	return signer.Open(cfg.Signer)
}

// New wires a sender. It asks nothing of anybody yet.
func New(cfg Config, log zerolog.Logger, metrics *Metrics, keys []signer.Signer, client *bus.Client, db *pg.DB,
	node *evm.Client) *Sender {
	s := newSender(cfg, log, metrics, lease.NewOwner(cfg.Sender.Node), keys, time.Now)
	leases := txstore.NewLeases(db)
	s.outside = outside{client: client, db: db, node: node,
		venue: gmx.Follow(cfg.Venue.DataStore, s.addresses(), node, log), state: db, leases: leases, nonces: leases,
		intents: txstore.NewIntents(db), session: leases,
		checks: checklog.New(txstore.NewCheckLog(db), s.clock, log),
		results: func() (ended, givenUp txmanager.Publisher) {
			return newResults(client, cfg.Keeper), newDeadLetters(client, cfg.Keeper)
		}}
	return s
}

// newSender makes a sender that still lacks what it works with.
func newSender(cfg Config, log zerolog.Logger, metrics *Metrics, owner lease.Owner, keys []signer.Signer,
	machine func() time.Time) *Sender {
	s := &Sender{cfg: cfg, log: log, metrics: metrics, owner: owner, keys: keys, clock: machine,
		quotes: preflight.NewQuotes(cfg.Sender.Volatile.Window)}
	s.unreadable = newUnreadable(metrics.unreadable, log)
	clock := func() time.Time { return s.clock() }
	s.headTracker = headtrack.New(clock)
	s.turns = turns.New(turns.Config{Tier: cfg.Tier, Own: s.addresses(), Head: s.headTracker, Clock: clock,
		Metrics: metrics.turns, Log: log})
	return s
}

func (s *Sender) gate() preflight.Gate {
	return preflight.Gate{
		Head: s.headTracker, Quotes: s.quotes, EvidenceMs: s.turns.EvidenceMs, State: s.state,
		Endpoints: s.node.Endpoints, Bounds: s.cfg.Sender.bounds(),
	}
}

func (s *Sender) newPreflight() *preflight.Preflight {
	cfg := preflight.Config{Venue: s.venue, FrozenRole: s.cfg.Keeper.FrozenRole}
	return preflight.New(cfg, preflight.Parts{Node: s.node, State: s.state, Head: s.headTracker, Quotes: s.quotes,
		Gate: s.gate(), Clock: s.clock, Metrics: s.metrics.preflight, Notes: s.checks, Log: s.log})
}

// Run waits for a database and topics it can work with, and then sends until ctx ends. It fails when readers are
// switched to a state of another layout: senders of the build that can read it take partitions and signers.
func (s *Sender) Run(ctx context.Context) error {
	s.preflight = s.newPreflight()
	s.manager = s.newManager()
	if err := s.awaitParts(ctx); err != nil {
		return err
	}
	s.log.Info().Str("mode", s.cfg.Sender.Mode).Str("owner", s.owner.ID.String()).Str("node", s.owner.Label).
		Int("signers", len(s.keys)).Msg("ready to send")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.db.WatchLayout(ctx) })
	group.Go(func() error { return s.attend(ctx) })
	group.Go(func() error {
		queued := txstore.NewIntents(s.db).Listener()
		defer queued.Close()
		return s.manager.Run(ctx, queued.WaitChange)
	})
	if s.cfg.Sender.Mode == basic {
		for _, key := range s.keys {
			group.Go(func() error { return s.manager.Work(ctx, key) })
		}
	}
	group.Go(func() error { return s.checks.Run(ctx) })
	group.Go(func() error { return s.observe(ctx) })
	group.Go(func() error { return s.takeTurns(ctx) })
	p := pauses{txstore.NewSigners(s.db), s.addresses(), s.notices.set, s.metrics, s.log, nil}
	group.Go(func() error { return p.Run(ctx) })
	s.follow(ctx, group)
	return group.Wait()
}

// attend keeps the session by which a successor can tell that this process lives, where there can be one.
func (s *Sender) attend(ctx context.Context) error {
	err := s.session.Attend(ctx, s.owner)
	if ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("should this process die, its successors wait until its leases end")
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

// follow has the heads, the prices and the jobs read, until ctx ends.
func (s *Sender) follow(ctx context.Context, group *errgroup.Group) {
	id := s.cfg.Keeper.ChainID
	jobs := bus.GroupConfig{ID: fmt.Sprintf("perp.%d.sender", id), Topic: wire.JobTopic(id)}
	group.Go(func() error { return s.venue.Run(ctx) })
	group.Go(func() error { return s.headTracker.Follow(ctx, s.node.Heads(ctx)) })
	group.Go(func() error { return s.quotes.Follow(ctx, s.client, wire.PriceTopic(id), s.unreadable.price) })
	group.Go(func() error {
		adopted := &adoption{s: s, stop: func() {}}
		adopted.begin(ctx, nil)
		jobs.OnAssign = func(own []int) { adopted.begin(ctx, own) }
		defer func() { adopted.stop() }()
		return s.client.Join(ctx, jobs, s.consume)
	})
}

// observe reads the evidence of the tiers until ctx ends. While the reader has met something that it does not
// understand, or its topic was made anew, the gate closes, and what is in flight is followed all the same.
func (s *Sender) observe(ctx context.Context) error {
	if !s.cfg.Tier.Enabled {
		return nil
	}
	decoder := gmx.NewDecoder().Passing()
	pauses := retry.Policy{Initial: 10 * time.Second, Max: time.Minute} // each reading is of the last 15 minutes
	return evidence.Follow(ctx, pauses, func() *evidence.Reader {
		return evidence.NewReader(s.client, s.cfg.Keeper, decoder, s.turns, s.unreadable.report)
	}, func(why error) {
		if why == nil {
			s.notices.set("evidence", "")
			return
		}
		s.log.Error().Err(why).Msg("the evidence of the tiers has ended: nothing is sent until it is read anew")
		s.notices.set("evidence", why.Error())
	})
}

// awaitParts waits for Postgres, the chain and Kafka, however long they are away, and fails at once where they are
// there and cannot serve: a schema of another version, a signer of another chain, a missing topic, another number of
// partitions. Whoever cannot reach the chain does not join the group: it would take partitions and leases from one who
// can.
func (s *Sender) awaitParts(ctx context.Context) error {
	report := func(reason string) { s.notices.set("parts", reason) }
	report("starting")
	policy := retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) { report(err.Error()) }}
	if err := s.db.AwaitSchema(ctx, policy); err != nil {
		return err
	}
	for _, key := range s.keys {
		if err := retry.Do(ctx, policy, func(ctx context.Context) error { return s.register(ctx, key) }); err != nil {
			return err
		}
	}
	if err := retry.Do(ctx, policy, s.reachChain); err != nil {
		return err
	}
	if err := retry.Do(ctx, policy, s.venue.Look); err != nil {
		return err
	}
	watch := txmanager.KeyWatch{Node: s.node, Store: s.session, Span: s.cfg.Sender.SignerWatch}
	if err := retry.Do(ctx, policy, func(ctx context.Context) error {
		return watch.Await(ctx, s.addresses(), report)
	}); err != nil {
		return err
	}
	keeper, chain := s.cfg.Keeper, s.cfg.Keeper.ChainID
	names := []string{wire.JobTopic(chain), wire.ResultTopic(chain), wire.PriceTopic(chain),
		wire.DeadLetterTopic(chain)}
	if s.cfg.Tier.Enabled {
		names = append(names, wire.LogTopic(chain))
	}
	if err := s.client.Verify(ctx, bus.Specs(keeper.Named(names...)...)); err != nil {
		return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
	}
	report("")
	return nil
}

func (s *Sender) reachChain(ctx context.Context) error {
	_, err := s.node.Head(ctx)
	if evm.WrongChain(err) {
		return retry.Stop(err)
	}
	return err
}

func (s *Sender) register(ctx context.Context, key signer.Signer) error {
	err := s.leases.Register(ctx, key.Address(), s.cfg.Keeper.ChainID)
	if pg.Refused(err) {
		return retry.Stop(err)
	}
	return err
}
