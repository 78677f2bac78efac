package sender

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/check"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retention"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
	"perpkeeper/services/sender/preflight"
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
	Node        string        `toml:"node" help:"name of this process in leases and logs, for people; empty = the container's name, or host name and process id"`
	Mode        string        `toml:"mode" help:"worker-queue: a signer's lease goes with its partition of the job topic; basic: any sender may have it; shadow: without keys, every job is simulated and nothing is sent"`
	LeaseTTL    time.Duration `toml:"lease_ttl" help:"for how long a signer's lease is taken; a sender that dies is succeeded after a second, or, where its database session cannot tell, after this long"`
	SignerWatch time.Duration `toml:"signer_watch" help:"how long signers that are new to the database are watched for others' transactions before the first is sent"`
	MaxJobAge   time.Duration `toml:"max_job_age" help:"how far back the job topic is read at take-over, and how long a job may wait for its moment"`
	Cooldown    time.Duration `toml:"cooldown" help:"how long a job that was done, here or elsewhere, is not taken up again; failures have their own pauses"`
	FrozenRole  bool          `toml:"frozen_role" help:"this keeper's signers hold the frozen-order role"`

	MaxInFlight     int `toml:"max_in_flight" help:"most transactions of one signer that are sent and not mined yet"`
	Reserved        int `toml:"reserved_in_flight" help:"how many of these places only liquidations and deleveragings may take"`
	Batch           int `toml:"batch" help:"most jobs of one signer that are looked at side by side and claimed in one statement"`
	MaxLiquidations int `toml:"max_liquidations" help:"most liquidations that are sent and not mined yet, over all senders of the keeper"`

	PrivateOnly     []string      `toml:"private_only" help:"lanes whose transactions only chain.private_urls get at first: liquidation, order, maintenance; none by default"`
	PrivateDeadline time.Duration `toml:"private_deadline" help:"how long after its first broadcast such a transaction goes to the public endpoints too, if it is not mined"`

	ConfirmTimeout time.Duration `toml:"confirm_timeout" help:"after how long without a receipt people are told; the transaction goes on being broadcast"`

	HeadMaxAge  time.Duration `toml:"head_max_age" help:"nothing new is signed when the newest block came longer ago than this"`
	HeadMaxSkew time.Duration `toml:"head_max_skew" help:"nothing new is signed when the newest block is further than this from the time that price reports or a second endpoint's newest block show, the later of the two; nor a job of which a report is further ahead"`
	StateMaxLag time.Duration `toml:"state_max_lag" help:"nothing new is signed when the state in Postgres is further behind the chain than this"`
	PriceMaxAge time.Duration `toml:"price_max_age" help:"a job is not signed for while the newest report of any of its tokens is older than the newest block by more than this"`

	Fee      txm.Policy    `toml:"fee"`
	Volatile Volatile      `toml:"nervous"`
	Gas      preflight.Gas `toml:"gas"`
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
			PrivateDeadline: 2 * time.Second, ConfirmTimeout: 10 * time.Second,
			HeadMaxAge: fresh.Head, HeadMaxSkew: fresh.Skew, StateMaxLag: fresh.Watermark,
			PriceMaxAge: fresh.Price,
			Fee:         txm.DefaultPolicy(), Volatile: defaultVolatile(),
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
	problems := []error{c.Venue.Demand(job.Order, job.Liquidation, job.Deposit, job.Withdrawal)}
	if c.Sender.Mode == Shadow {
		return errors.Join(problems...) // nor does this
	}
	if err := c.Signer.Demand(); err != nil {
		problems = append(problems, fmt.Errorf("signer.%w", err))
	}
	if len(c.Sender.PrivateOnly) > 0 && len(c.Chain.PrivateURLs) == 0 {
		problems = append(problems, errors.New("sender.private_only: there is no private endpoint (name one in "+
			"chain.private_urls, or leave private_only empty)"))
	}
	return errors.Join(problems...)
}

// What nobody means to configure.
const (
	mostInFlight     = 200
	mostLiquidations = 1000
)

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	badTTL := lease.CheckTTL(s.LeaseTTL)
	problems := []error{
		check.Refuse(s.Mode != workerQueue && s.Mode != basic && s.Mode != Shadow, "mode: %q is none of %s, %s, %s",
			s.Mode, workerQueue, basic, Shadow),
		check.Refuse(badTTL != nil, "lease_ttl: %w", badTTL),
		check.Between("signer_watch", s.SignerWatch, 0, 10*time.Minute),
		check.Between("max_job_age", s.MaxJobAge, 10*time.Second, time.Hour),
		check.Between("cooldown", s.Cooldown, 0, 10*time.Minute),
		check.Between("private_deadline", s.PrivateDeadline, 100*time.Millisecond, 20*time.Second),
		check.Between("confirm_timeout", s.ConfirmTimeout, time.Second, 10*time.Minute),
		check.Between("head_max_age", s.HeadMaxAge, 100*time.Millisecond, time.Minute),
		check.Between("head_max_skew", s.HeadMaxSkew, 100*time.Millisecond, time.Minute),
		check.Between("state_max_lag", s.StateMaxLag, 100*time.Millisecond, time.Minute),
		check.Between("price_max_age", s.PriceMaxAge, 100*time.Millisecond, 5*time.Minute),
		check.Between("max_in_flight", s.MaxInFlight, 1, mostInFlight),
		check.Between("batch", s.Batch, 1, 100),
		check.Between("max_liquidations", s.MaxLiquidations, 1, mostLiquidations),
		check.Between("reserved_in_flight", s.Reserved, 0, mostInFlight),
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
	return tier.Bounds{Head: s.HeadMaxAge, Skew: s.HeadMaxSkew, Watermark: s.StateMaxLag, Price: s.PriceMaxAge}
}

// flights are the limits of what is pending while the markets are calm.
func (s Settings) flights() txm.Limits {
	return txm.Limits{Signer: s.MaxInFlight, Reserved: s.Reserved, Liquidations: s.MaxLiquidations}
}

// privateLanes are the lanes whose transactions the public endpoints do not get at first.
func (s Settings) privateLanes() (lanes []job.Lane) {
	for _, lane := range s.PrivateOnly {
		lanes = append(lanes, job.Lane(lane))
	}
	return lanes
}
