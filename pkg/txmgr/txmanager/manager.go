package txmanager

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// Config is how a manager works its signers. No value has a default.
type Config struct {
	ChainID uint64
	Owner   lease.Owner   // of the leases
	TTL     time.Duration // for how long a lease is taken
	// Batch is the most tasks of one signer that are looked at side by side and claimed in one statement.
	Batch int
	// MaxWait is for how long a task may be made to wait before its attempt ends as expired. The time before its turn
	// does not count.
	MaxWait time.Duration
	// Cooldown is how long a job that was done is not taken up again; see [txm.CoolDown].
	Cooldown time.Duration
	Private  Private
	// Shared is true when other keepers may execute what this one does not: a signer whose transactions do not land
	// then claims no more.
	Shared bool
}

// Parts are what a manager works with. All are needed.
type Parts struct {
	Node    Node
	Leases  lease.Store
	Nonces  nonce.Store
	Intents txm.Store
	Heads   *headtrack.Tracker
	Limits  Limits
	Turns   Turns
	// Open begins the work of one signer. Look has its queue looked at again, because something changed that a task
	// waits for.
	Open func(account chain.Address, look func()) Work
	// Results begins to publish, for one lease term, all that has ended, and what was given up.
	Results func() (ended, givenUp Publisher)
	// Notice sets, for readiness, why a part is not doing its work; an empty reason means that all is well with it.
	Notice  func(part, reason string)
	Metrics *Metrics
	Log     zerolog.Logger
}

// Manager sends the transactions of the signers that it is given to work. It is safe for concurrent use.
type Manager struct {
	cfg    Config
	parts  Parts
	market *market
	roster *roster
}

// New makes a manager that works no signer yet. It asks nothing of anybody.
func New(cfg Config, p Parts) *Manager {
	return &Manager{cfg: cfg, parts: p, roster: &roster{workers: map[chain.Address]*worker{}},
		market: &market{node: p.Node, heads: p.Heads, limits: p.Limits, log: p.Log}}
}

// Run keeps what others pay fresh, and wakes the signers whenever changed returns, until ctx ends. Changed returns when
// any process may have queued something; an error of it ends the wake-ups.
func (m *Manager) Run(ctx context.Context, changed func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.market.follow(ctx) })
	group.Go(func() error { return m.roster.follow(ctx, changed) })
	return group.Wait()
}

// Wake has the queue of a signer looked at now, if the signer is worked here.
func (m *Manager) Wake(account chain.Address) { m.roster.wake(account) }

// Work holds the lease of a signer, one lease term after the other, and does its work until ctx ends. In the end the
// lease is given back, so that the next owner need not wait for it to run out.
func (m *Manager) Work(ctx context.Context, key signer.Signer) error { return m.worker(key).run(ctx) }
