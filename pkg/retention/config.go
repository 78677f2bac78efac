package retention

import (
	"errors"
	"time"

	"perpkeeper/pkg/check"
)

// Config is the [retention] section.
type Config struct {
	After time.Duration `toml:"after" help:"how long after its end a job stays in the tables that senders work with, before it moves to the archive; 0 = for ever"`
	Keep  time.Duration `toml:"keep" help:"how long after its end a job stays in the archive, whose weeks are dropped whole; 0 = for ever"`
	Batch int           `toml:"batch" help:"most jobs that are moved in one transaction"`
}

// DefaultConfig keeps two days at hand and three months in all.
func DefaultConfig() Config {
	return Config{After: 48 * time.Hour, Keep: 90 * 24 * time.Hour, Batch: 200}
}

// What is at hand has to be more than what a day's money is counted from, with room for clocks that differ. What is
// kept has to be more than that by the week that is dropped at once.
const (
	minAfter = 26 * time.Hour
	week     = 7 * 24 * time.Hour
	longest  = 100 * 365 * 24 * time.Hour
)

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	return errors.Join(
		check.Refuse(c.After != 0 && (c.After < minAfter || c.After > longest),
			"after: %s is not between %s and %s (or 0, for ever)", c.After, minAfter, longest),
		check.Refuse(c.Keep != 0 && (c.Keep < c.After+week || c.Keep > longest),
			"keep: %s is not between %s (retention.after and a week) and %s (or 0, for ever)", c.Keep, c.After+week,
			longest),
		check.Between("batch", c.Batch, 1, 10_000),
	)
}
