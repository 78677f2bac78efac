package statevm

import (
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// Config is the whole configuration of the process.
type Config struct {
	Keeper   wire.Config `toml:"keeper"`
	Kafka    bus.Config  `toml:"kafka"`
	Postgres pg.Config   `toml:"postgres"`
	Venue    gmx.Events  `toml:"venue"`
	Statevm  Settings    `toml:"-"`
}

// Settings are what is decided here.
type Settings struct {
	// Generation is the only one of the state to keep up to date; 0 = the active one and all others that are to be.
	Generation int
	// MaxRecords: most records applied in one transaction when behind.
	MaxRecords int
}

// DefaultConfig fills the active generation.
func DefaultConfig() Config {
	return Config{
		Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig(),
		Statevm: Settings{MaxRecords: 10_000},
	}
}

// Validate is for what concerns several sections at once, which is nothing.
func (Config) Validate() error { return nil }
