package scanner

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price/sources"
	"perpkeeper/pkg/setting/check"
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
	// FirstWords are read at the topic's first block, for what is folded before the first audit: deployments write them
	// without an event.
	FirstWords []perp.Word `toml:"-"`
	// AuditInterval: how often every word that rules read is compared with the DataStore; what differs is published.
	AuditInterval time.Duration `toml:"-"`
	Backfill      Backfill      `toml:"backfill"`
	// AcceptReorgTo lifts a HALT: the chain has left a block it had called final, and the operator knows of it.
	// Everything above the named block is taken back. The HALT names the newest block that will do; an older one does
	// too. It is to be removed afterwards.
	AcceptReorgTo chain.Hash     `toml:"accept_reorg_to" help:"after a HALT: hash of the block to go back to, which the HALT names; else all zero"`
	Price         sources.Config `toml:"price"`
	// MaxHeadAge: how long no new head may have come before this process calls itself not ready.
	MaxHeadAge time.Duration `toml:"-"`
	// TakeoverAfter must be longer than a range of history takes, or a scanner that stands by claims the topic from one
	// that is at work.
	TakeoverAfter time.Duration `toml:"-"`
}

// Backfill is the [scanner.backfill] section: how history is fetched.
type Backfill struct {
	// Workers: ranges whose headers are read at the same time, and blocks read at the same time. As many ranges wait to
	// be written at most.
	Workers  int    `toml:"-"`
	MaxRange uint64 `toml:"max_range" help:"blocks of a range at most; fewer where they are full of logs. With a quarter of it missing, final blocks are published in ranges"`
}

// Validate names every setting that cannot work.
func (b Backfill) Validate() error {
	return check.Between("max_range", b.MaxRange, 1, 1<<20)
}

// DefaultConfig lacks the addresses of the exchange and the first block.
func DefaultConfig() Config {
	return Config{
		Keeper: wire.DefaultConfig(), Chain: evm.DefaultConfig(), Kafka: bus.DefaultConfig(),
		Venue: gmx.DefaultConfig(),
		Scanner: Settings{
			Price: sources.DefaultConfig(), MaxHeadAge: 15 * time.Second, TakeoverAfter: 30 * time.Second,
			AuditInterval: time.Hour, FirstWords: firstWords(),
			Backfill: Backfill{Workers: 8, MaxRange: 2000},
		},
	}
}

func firstWords() (words []perp.Word) {
	for _, name := range []string{"REQUEST_EXPIRATION_TIME", "MAX_ORACLE_PRICE_AGE"} {
		words = append(words, perp.WordName{Name: name, Kind: perp.UintWord, Scope: perp.OfVenue}.Words(nil)...)
	}
	return words
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error { return nil }

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	return check.Refuse(s.StartBlock == 0, "start_block: is not set (name the block the exchange was deployed in)")
}
