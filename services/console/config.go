package console

import (
	"net/netip"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/notify/receivers"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/liquidation"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/tier"
)

// Config is the whole configuration of the process.
type Config struct {
	Own      Settings         `toml:"console"`
	Keeper   wire.Config      `toml:"keeper"`
	Chain    evm.Config       `toml:"chain"` // a monitor needs it, as Tier and Emergency; pages show what it says
	Kafka    bus.Config       `toml:"kafka"`
	Postgres pg.Config        `toml:"postgres"`
	Tier     tier.Config      `toml:"tier"`
	Notify   receivers.Config `toml:"notify"`
	// Liquidation is the venue's, by which pages judge.
	Liquidation liquidation.Config `toml:"liquidation"`
	// Emergency is what a monitor's alarms call for.
	Emergency emergency.Config `toml:"emergency"`
}

// DefaultConfig notifies nobody, and lacks the database.
func DefaultConfig() Config {
	return Config{
		Own:    Settings{Users: "console-users"},
		Keeper: wire.DefaultConfig(), Chain: evm.DefaultConfig(), Kafka: bus.DefaultConfig(),
		Postgres: pg.DefaultConfig(), Tier: tier.DefaultConfig(),
		Notify: receivers.DefaultConfig(), Liquidation: liquidation.DefaultConfig(),
		Emergency: emergency.DefaultConfig(),
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error { return nil }

// Settings is the [console] section.
type Settings struct {
	Users     string           `toml:"users" help:"file of who may sign in, a line each: NAME ROLE HASH; keeperctl password makes a hash"`
	TLS       bool             `toml:"tls" help:"browsers come by https, to a proxy before this process: its cookies and pages are for https alone"`
	Proxies   []netip.Prefix   `toml:"proxies" help:"networks of proxies before this process, such as 172.16.0.0/12: whom they forward for is believed"`
	Processes []status.Address `toml:"processes" help:"where the keeper's processes serve their pages, NAME=http://HOST:PORT each; the overview asks them"`
}

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	return check.Refuse(s.Users == "", "users: names no file")
}
