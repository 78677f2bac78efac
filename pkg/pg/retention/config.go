package retention

import (
	"time"

	"perpkeeper/pkg/setting/check"
)

// Config is the [retention] section.
type Config struct {
	// After is how long after its end a job stays in the tables that senders work with, before it moves to the archive;
	// 0 = for ever. It has to be more than what a day's money is counted from, with room for clocks that differ.
	After time.Duration `toml:"-"`
	Keep  time.Duration `toml:"keep" help:"how long after its end a job stays in the archive, whose weeks are dropped whole; 0 = for ever"`
	// Batch: most jobs that are moved in one transaction.
	Batch int `toml:"-"`
}

// DefaultConfig keeps two days at hand and three months in all.
func DefaultConfig() Config {
	return Config{After: 48 * time.Hour, Keep: 90 * 24 * time.Hour, Batch: 200}
}

// What is kept has to be more than what is at hand, by the week that is dropped at once.
const (
	week    = 7 * 24 * time.Hour
	longest = 100 * 365 * 24 * time.Hour
)

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	return check.Refuse(c.Keep != 0 && (c.Keep < c.After+week || c.Keep > longest),
		"keep: %s is not between %s and %s (or 0, for ever)", c.Keep, c.After+week, longest)
}
