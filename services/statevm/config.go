package statevm

import (
	"errors"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/check"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/snapshot/store"
	"perpkeeper/pkg/wire"
)

// Config is the whole configuration of the process.
type Config struct {
	Keeper   wire.Config  `toml:"keeper"`
	Kafka    bus.Config   `toml:"kafka"`
	Postgres pg.Config    `toml:"postgres"`
	Venue    gmx.Config   `toml:"venue"`
	Snapshot store.Config `toml:"snapshot"`
	Statevm  Settings     `toml:"statevm"`
}

// Settings is the [statevm] section.
type Settings struct {
	Generation int `toml:"generation" help:"the only generation of the state to keep up to date; 0 = the active one and all others that are to be"`
	MaxRecords int `toml:"max_records" help:"most records applied in one transaction when behind"`
}

// DefaultConfig fills the active generation, of an exchange that is not named yet.
func DefaultConfig() Config {
	return Config{
		Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig(),
		Venue: gmx.DefaultConfig(), Snapshot: store.DefaultConfig(),
		Statevm: Settings{MaxRecords: 10_000},
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error { return c.Snapshot.Allows(c.Keeper.LogRetention) }

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	return errors.Join(
		check.Refuse(s.Generation < 0, "generation: %d is negative (use 0 for the active one)", s.Generation),
		check.Between("max_records", s.MaxRecords, 1, 100_000),
	)
}
