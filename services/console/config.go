package console

import (
	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/emergency"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/wire"
)

// Config is the whole configuration of the process.
type Config struct {
	Keeper   wire.Config   `toml:"keeper"`
	Chain    evm.Config    `toml:"chain"` // of a monitor, as Venue, Tier and Emergency
	Kafka    bus.Config    `toml:"kafka"`
	Postgres pg.Config     `toml:"postgres"`
	Venue    gmx.Config    `toml:"venue"`
	Tier     tier.Config   `toml:"tier"`
	Notify   notify.Config `toml:"notify"`
	// Emergency is what a monitor says its alarms call for.
	Emergency emergency.Config `toml:"emergency"`
}

// DefaultConfig tells nobody of anything, and lacks the venue and the database.
func DefaultConfig() Config {
	return Config{
		Keeper: wire.DefaultConfig(), Chain: evm.DefaultConfig(), Kafka: bus.DefaultConfig(),
		Postgres: pg.DefaultConfig(), Venue: gmx.DefaultConfig(), Tier: tier.DefaultConfig(),
		Notify: notify.DefaultConfig(), Emergency: emergency.DefaultConfig(),
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error { return nil }
