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
}

// DefaultConfig is that of one process of the state.
func DefaultConfig() Config {
	return Config{Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig()}
}

// Validate is for what concerns several sections at once, which is nothing.
func (Config) Validate() error { return nil }
