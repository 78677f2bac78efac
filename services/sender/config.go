package sender

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/retention"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// Config is the whole configuration of the process.
type Config struct {
	Keeper    wire.Config      `toml:"keeper"`
	Chain     evm.Config       `toml:"chain"`
	Kafka     bus.Config       `toml:"kafka"`
	Postgres  pg.Config        `toml:"postgres"`
	Venue     gmx.Config       `toml:"venue"`
	Signer    signer.Config    `toml:"signer"`
	Tier      tier.Config      `toml:"tier"`
	Sender    Settings         `toml:"sender"`
	Retention retention.Config `toml:"retention"`
}

// Settings is the [sender] section.
type Settings struct {
	// Node: name of this process in leases and logs, for people; empty = the container's name, or host name and process
	// id.
	Node        string        `toml:"-"`
	Mode        string        `toml:"mode" help:"worker-queue: a signer's lease goes with its partition of the job topic; basic: any sender may have it; shadow: without keys, every job is simulated and nothing is sent"`
	LeaseTTL    time.Duration `toml:"lease_ttl" help:"for how long a signer's lease is taken; a sender that dies is succeeded after a second, or, where its database session cannot tell, after this long"`
	SignerWatch time.Duration `toml:"signer_watch" help:"how long signers that are new to the database are watched for others' transactions before the first is sent"`
	// MaxJobAge: how far back the job topic is read at take-over, and how long a job may wait for its moment.
	MaxJobAge time.Duration `toml:"-"`
	// Cooldown: how long a job that was done, here or elsewhere, is not taken up again; failures have their own pauses.
	Cooldown time.Duration `toml:"-"`

	MaxInFlight int `toml:"max_in_flight" help:"most transactions of one signer that are sent and not mined yet"`
	// Reserved: how many of these places only liquidations and deleveragings may take.
	Reserved int `toml:"-"`
	// Batch: most jobs of one signer that are looked at side by side and claimed in one statement.
	Batch int `toml:"-"`
	// MaxLiquidations: most liquidations that are sent and not mined yet, over all senders of the keeper.
	MaxLiquidations int `toml:"-"`

	PrivateOnly     []string      `toml:"private_only" help:"lanes whose transactions only chain.private_urls get at first: liquidation, order, maintenance; none by default"`
	PrivateDeadline time.Duration `toml:"private_deadline" help:"how long after its first broadcast such a transaction goes to the public endpoints too, if it is not mined"`

	// MaxLag bounds three ages: of the newest block, of the state, and of the block by the time that reports or a
	// second endpoint show, the later of the two.
	MaxLag time.Duration `toml:"max_lag" help:"nothing new is signed when what is known of the chain is further behind than this: its newest block, or the state in Postgres"`
	// PriceMaxAge: a job is not signed for while the newest report of any of its tokens is older than the newest block
	// by more than this.
	PriceMaxAge time.Duration `toml:"-"`

	Fee      txm.Policy `toml:"fee"`
	Volatile Volatile   `toml:"-"`
}

// The modes (NON-9). A shadow holds no lease and signs nothing. For the others jobs are stored before anything is done
// about them, and done under a lease in either: a keeper may run senders of both at once, as it does while it changes
// from one to the other.
const (
	workerQueue = "worker-queue"
	basic       = "basic"
	Shadow      = "shadow"
)

// DefaultConfig lacks addresses, keys and the database.
func DefaultConfig() Config {
	fresh := tier.DefaultBounds()
	return Config{
		Keeper: wire.DefaultConfig(), Chain: evm.DefaultConfig(), Kafka: bus.DefaultConfig(),
		Postgres: pg.DefaultConfig(), Venue: gmx.DefaultConfig(),
		Signer: signer.DefaultConfig(), Tier: tier.DefaultConfig(), Retention: retention.DefaultConfig(),
		Sender: Settings{
			Mode: workerQueue, LeaseTTL: lease.DefaultTTL, MaxJobAge: 300 * time.Second, Cooldown: 10 * time.Second,
			MaxInFlight: 16, Reserved: 4, Batch: 8, MaxLiquidations: 10,
			PrivateDeadline: 2 * time.Second,
			MaxLag:          fresh.Head,
			PriceMaxAge:     fresh.Price,
			Fee:             txm.DefaultPolicy(), Volatile: defaultVolatile(),
		},
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error {
	if c.Tier.Monitor && c.Signer.Demand() == nil {
		return errors.New("signer: there are keys, and a keeper with tier.monitor = true never signs (take " +
			"signer.keystore_dir or the like away, or tier.monitor)")
	}
	if c.Tier.Monitor {
		return nil
	}
	if c.Sender.Mode == Shadow {
		return nil // nor does this
	}
	var problems []error
	if err := c.Signer.Demand(); err != nil {
		problems = append(problems, fmt.Errorf("signer.%w", err))
	}
	if len(c.Sender.PrivateOnly) > 0 && len(c.Chain.PrivateURLs) == 0 {
		problems = append(problems, errors.New("sender.private_only: there is no private endpoint (name one in "+
			"chain.private_urls, or leave private_only empty)"))
	}
	turn := c.Tier.Window - tier.Guard
	problems = append(problems, check.Refuse(len(c.Sender.PrivateOnly) > 0 && c.Tier.Enabled &&
		c.Tier.Policy == tier.PolicyWindows && c.Sender.PrivateDeadline >= turn, "sender.private_deadline: %s is not "+
		"over within a turn by tier.window, %s (shorten it)", c.Sender.PrivateDeadline, turn))
	return errors.Join(problems...)
}

// mostInFlight is more than nodes keep of one account.
const mostInFlight = 200

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	badTTL := lease.CheckTTL(s.LeaseTTL)
	problems := []error{
		check.Refuse(s.Mode != workerQueue && s.Mode != basic && s.Mode != Shadow, "mode: %q is none of %s, %s, %s",
			s.Mode, workerQueue, basic, Shadow),
		check.Refuse(badTTL != nil, "lease_ttl: %w", badTTL),
		check.Between("signer_watch", s.SignerWatch, 0, 10*time.Minute),
		check.Between("private_deadline", s.PrivateDeadline, 100*time.Millisecond, 20*time.Second),
		check.Between("max_lag", s.MaxLag, time.Second, time.Minute),
		check.Between("max_in_flight", s.MaxInFlight, 1, mostInFlight),
	}
	for _, lane := range s.PrivateOnly {
		problems = append(problems, check.Refuse(!slices.Contains(job.Lanes(), job.Lane(lane)),
			"private_only: %q is no lane (there are %v)", lane, job.Lanes()))
	}
	return errors.Join(problems...)
}

// database is the database's configuration with times that suit leases: a statement or transaction that hangs is ended
// well before the lease is, because it would hold the row that a successor needs. Its statements are planned once.
func (c Config) database() pg.Config {
	db, most := c.Postgres, c.Sender.LeaseTTL/4
	db.ConnectTimeout, db.StatementTimeout = min(db.ConnectTimeout, most), min(db.StatementTimeout, most)
	db.IdleInTransactionTimeout, db.PlanOnce = min(db.IdleInTransactionTimeout, most), true
	return db
}

// bounds are those of the freshness gate.
func (s Settings) bounds() tier.Bounds {
	return tier.Bounds{Head: s.MaxLag, Skew: s.MaxLag, Watermark: s.MaxLag, Price: s.PriceMaxAge}
}

// inFlight are the limits of what is pending while the markets are calm.
func (s Settings) inFlight() txm.Limits {
	return txm.Limits{Signer: s.MaxInFlight, Reserved: s.Reserved, Liquidations: s.MaxLiquidations}
}

// privateLanes are the lanes whose transactions the public endpoints do not get at first.
func (s Settings) privateLanes() (lanes []job.Lane) {
	for _, lane := range s.PrivateOnly {
		lanes = append(lanes, job.Lane(lane))
	}
	return lanes
}
