package demo

import (
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier"
)

// Config is the whole configuration of the demo.
type Config struct {
	Demo Settings `toml:"demo"`
}

// Settings is the [demo] section.
type Settings struct {
	Duration  time.Duration `toml:"duration" help:"end after this time; fail unless the Master alone executed and liquidated, nothing twice; 0 = until interrupted"`
	Dir       string        `toml:"dir" help:"folder for data and logs, kept at the end; empty = a temporary one, removed at the end"`
	Binaries  string        `toml:"binaries" help:"folder with the programs; empty = that of this program"`
	BlockTime time.Duration `toml:"block_time" help:"time between two blocks of the demo chain"`
	ChainID   uint64        `toml:"chain_id" help:"id of the demo chain, part of every topic's name"`
	Keepers   int           `toml:"keepers" help:"complete keepers, each a tier of its own: the Master, Backup-1, …; 1 = a keeper alone"`
	Shadow    bool          `toml:"shadow" help:"a further keeper without keys, which tries out what it would send; keeperctl shadow report scores it"`
	Window    time.Duration `toml:"window" help:"how long a tier owns a job before it passes to the next"`
	Brokers   []string      `toml:"brokers" help:"Kafka brokers that run already, for a keeper alone; empty = an embedded broker for each"`
	Postgres  secret.URL    `toml:"postgres" help:"address of an empty database that is there already, for a keeper alone; empty = an embedded server for each"`
	Rate      int           `toml:"rate" help:"actions of the demo's traders per second"`
	Seed      uint64        `toml:"seed" help:"decides prices and trades of the demo"`
	Scanner   int           `toml:"scanner" help:"copies of each keeper's scanner, of which one works and the others stand by"`
	Statevm   int           `toml:"statevm" help:"copies of each keeper's statevm"`
	Planner   int           `toml:"planner" help:"copies of each keeper's planner"`
	Sender    int           `toml:"sender" help:"copies of each keeper's sender"`
	Signers   int           `toml:"signers" help:"signers of each keeper"`
}

// DefaultConfig is three keepers with one of each on a chain with BSC's block time.
func DefaultConfig() Config {
	return Config{Demo: Settings{
		BlockTime: 450 * time.Millisecond, ChainID: 1337, Keepers: 3, Window: tier.DefaultConfig().Window, Rate: 2,
		Seed: 1, Scanner: 1, Statevm: 1, Planner: 1, Sender: 1, Signers: 2,
	}}
}

// Validate is for what concerns several sections at once; there is one.
func (c Config) Validate() error { return nil }

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	var problems []error
	if s.Duration < 0 {
		problems = append(problems, fmt.Errorf("duration: %s is negative (write a duration such as 60s, or 0)",
			s.Duration))
	}
	if s.BlockTime < 50*time.Millisecond || s.BlockTime > 30*time.Second {
		problems = append(problems, fmt.Errorf("block_time: %s is not between 50ms and 30s", s.BlockTime))
	}
	if s.Window < 2*tier.Guard || s.Window > time.Hour {
		problems = append(problems, fmt.Errorf("window: %s is not between %s and 1h", s.Window, 2*tier.Guard))
	}
	for _, count := range []struct {
		key         string
		n           int
		least, most int
	}{
		{"keepers", s.Keepers, 1, 6}, {"rate", s.Rate, 0, 100}, {"scanner", s.Scanner, 1, 100},
		{"statevm", s.Statevm, 1, 100}, {"planner", s.Planner, 1, 100},
		{"sender", s.Sender, 1, 100}, {"signers", s.Signers, 1, 100},
	} {
		if count.n < count.least || count.n > count.most {
			problems = append(problems, fmt.Errorf("%s: %d is not between %d and %d", count.key, count.n, count.least,
				count.most))
		}
	}
	return errors.Join(append(problems, s.validateShared()...)...)
}

// validateShared refuses what keepers would have to share: topics are named after the chain alone, and a database holds
// the state of one keeper.
func (s Settings) validateShared() (problems []error) {
	if s.Keepers > 1 && len(s.Brokers) > 0 {
		problems = append(problems, fmt.Errorf("brokers: %d keepers cannot share a cluster (leave it empty, or set "+
			"keepers to 1)", s.Keepers))
	}
	if s.Keepers > 1 && s.Postgres.IsSet() {
		problems = append(problems, fmt.Errorf("postgres: %d keepers cannot share a database (leave it empty, or "+
			"set keepers to 1)", s.Keepers))
	}
	return problems
}
