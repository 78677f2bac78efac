package scanner

import (
	"errors"
	"slices"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/check"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/price/sources"
	"perpkeeper/pkg/wire"
)

// Config is the whole configuration of the process.
type Config struct {
	Keeper  wire.Config `toml:"keeper"`
	Chain   evm.Config  `toml:"chain"`
	Kafka   bus.Config  `toml:"kafka"`
	Venue   gmx.Config  `toml:"venue"`
	Scanner Settings    `toml:"scanner"`
}

// Settings is the [scanner] section.
type Settings struct {
	// StartBlock matters while the topic is empty only; afterwards the topic shows where it began.
	StartBlock uint64 `toml:"start_block" help:"first block of an empty topic: the one the exchange was deployed in"`
	// Signers are externally owned accounts, as whoever signs is. Their history needs nodes that keep old states: else
	// the body of every block is read, some ten times as much as its header.
	Signers       []chain.Address `toml:"signers" help:"signers whose transactions are recorded even when they leave no log: this keeper's, and others' to watch"`
	Params        []Param         `toml:"param" help:"further words of the DataStore to read: at the first block, and by audits"`
	AuditInterval time.Duration   `toml:"audit_interval" help:"how often every word that rules read is compared with the DataStore; what differs is published"`
	Backfill      Backfill        `toml:"backfill"`
	// AcceptReorgTo lifts a HALT: the chain has left a block it had called final, and the operator knows of it.
	// Everything above the named block is taken back. The HALT names the newest block that will do; an older one does
	// too. It is to be removed afterwards.
	AcceptReorgTo chain.Hash     `toml:"accept_reorg_to" help:"after a HALT: hash of the block to go back to, which the HALT names; else all zero"`
	Price         sources.Config `toml:"price"`
	MaxHeadAge    time.Duration  `toml:"max_head_age" help:"how long no new head may have come before this process calls itself not ready"`
	// TakeoverAfter must be longer than a range of history takes, or a scanner that stands by claims the topic from one
	// that is at work.
	TakeoverAfter time.Duration `toml:"takeover_after" help:"how long the topic must stay behind the chain before a scanner that stands by claims it"`
}

// DefaultConfig lacks the addresses of the exchange and the first block.
func DefaultConfig() Config {
	return Config{
		Keeper: wire.DefaultConfig(), Chain: evm.DefaultConfig(), Kafka: bus.DefaultConfig(),
		Venue: gmx.DefaultConfig(),
		Scanner: Settings{
			Price: sources.DefaultConfig(), MaxHeadAge: 15 * time.Second, TakeoverAfter: 30 * time.Second,
			AuditInterval: time.Hour,
			Backfill:      Backfill{MinBlocks: 512, Workers: 8, MaxRange: 2000, MaxBlocks: 50_000, MaxBytes: 128 << 20},
		},
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error {
	if c.Venue.DataStore.IsZero() {
		return errors.New("venue.data_store: no address given; the words of the exchange are read from it")
	}
	return nil
}

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	return errors.Join(
		check.Refuse(s.StartBlock == 0, "start_block: is not set (name the block the exchange was deployed in)"),
		check.Between("max_head_age", s.MaxHeadAge, 100*time.Millisecond, time.Hour),
		check.Between("takeover_after", s.TakeoverAfter, 100*time.Millisecond, time.Hour),
		check.Between("audit_interval", s.AuditInterval, 100*time.Millisecond, time.Hour),
	)
}

// sends reports whether an account is one of the configured signers.
func (s Settings) sends(account chain.Address) bool { return slices.Contains(s.Signers, account) }
