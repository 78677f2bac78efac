package console

import (
	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

// Config is the whole configuration of the process.
type Config struct {
	Keeper   wire.Config `toml:"keeper"`
	Kafka    bus.Config  `toml:"kafka"`
	Postgres pg.Config   `toml:"postgres"`
}

// DefaultConfig lacks the database.
func DefaultConfig() Config {
	return Config{Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig()}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error { return nil }
