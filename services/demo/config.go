package demo

import (
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/secret"
)

// Config is the whole configuration of the demo.
type Config struct {
	Demo Settings `toml:"demo"`
}

// Settings is the [demo] section.
type Settings struct {
	Duration  time.Duration `toml:"duration" help:"end after this time, and fail unless an order was executed and a position liquidated; 0 = until interrupted"`
	Dir       string        `toml:"dir" help:"folder for data and logs, kept at the end; empty = a temporary one, removed at the end"`
	Binaries  string        `toml:"binaries" help:"folder with the programs; empty = that of this program"`
	BlockTime time.Duration `toml:"block_time" help:"time between two blocks of the demo chain"`
	ChainID   uint64        `toml:"chain_id" help:"id of the demo chain, part of every topic's name"`
	Brokers   []string      `toml:"brokers" help:"Kafka brokers that run already; empty = an embedded broker"`
	Postgres  secret.URL    `toml:"postgres" help:"address of an empty database that is there already; empty = an embedded server"`
	Rate      int           `toml:"rate" help:"actions of the demo's traders per second"`
	Seed      uint64        `toml:"seed" help:"decides prices and trades of the demo"`
	Scanner   int           `toml:"scanner" help:"copies of scanner, of which one works and the others stand by"`
	Statevm   int           `toml:"statevm" help:"copies of statevm"`
	Planner   int           `toml:"planner" help:"copies of planner"`
	Sender    int           `toml:"sender" help:"copies of sender"`
	Signers   int           `toml:"signers" help:"signers of the keeper"`
}

// DefaultConfig is one of each on a chain with BSC's block time.
func DefaultConfig() Config {
	return Config{Demo: Settings{BlockTime: 450 * time.Millisecond, ChainID: 1337, Rate: 2, Seed: 1, Scanner: 1, Statevm: 1, Planner: 1, Sender: 1, Signers: 2}}
}

// Validate is for what concerns several sections at once; there is one.
func (c Config) Validate() error { return nil }

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	var problems []error
	if s.Duration < 0 {
		problems = append(problems, fmt.Errorf("duration: %s is negative (write a duration such as 60s, or 0)", s.Duration))
	}
	if s.BlockTime < 50*time.Millisecond || s.BlockTime > 30*time.Second {
		problems = append(problems, fmt.Errorf("block_time: %s is not between 50ms and 30s", s.BlockTime))
	}
	for _, count := range []struct {
		key      string
		n, least int
	}{{"rate", s.Rate, 0}, {"scanner", s.Scanner, 1}, {"statevm", s.Statevm, 1}, {"planner", s.Planner, 1}, {"sender", s.Sender, 1}, {"signers", s.Signers, 1}} {
		if count.n < count.least || count.n > 100 {
			problems = append(problems, fmt.Errorf("%s: %d is not between %d and 100", count.key, count.n, count.least))
		}
	}
	return errors.Join(problems...)
}
