package delayed

import (
	"errors"
	"time"

	"perpkeeper/pkg/check"
)

// Config is the [delayed] section.
type Config struct {
	Interval    time.Duration `toml:"interval" help:"how often to look for due work when nothing else tells (10s; up to 2h saves questions and costs delay)"`
	Concurrency int           `toml:"concurrency" help:"jobs worked on at once by this process"`
	Batch       int           `toml:"batch" help:"due rows listed with one question; a scan takes all of them, batch after batch"`
	MaxAttempts int           `toml:"max_attempts" help:"failed attempts after which a job is parked for the operator"`
	Backoff     time.Duration `toml:"backoff" help:"pause after the first failed attempt; it doubles with each"`
	MaxBackoff  time.Duration `toml:"max_backoff" help:"longest pause between two attempts"`
	Keep        time.Duration `toml:"keep" help:"how long after it was done a release or an expiry stays in the database; 0 = for ever"`
}

// DefaultConfig scans every 10 s, works on two jobs at once (DLY-4, DLY-8), and keeps three months.
func DefaultConfig() Config {
	return Config{Interval: 10 * time.Second, Concurrency: 2, Batch: 100, MaxAttempts: 10, Backoff: 10 * time.Second,
		MaxBackoff: 10 * time.Minute, Keep: 90 * 24 * time.Hour}
}

// leastKeep leaves people the time to look at what was done.
const leastKeep = 24 * time.Hour

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	return errors.Join(
		check.Between("interval", c.Interval, 100*time.Millisecond, 2*time.Hour),
		check.Between("concurrency", c.Concurrency, 1, 64),
		check.Between("batch", c.Batch, 1, 10_000),
		check.Refuse(c.MaxAttempts < 1, "max_attempts: %d is less than 1", c.MaxAttempts),
		check.Refuse(c.Backoff < time.Millisecond, "backoff: %s is too short (use 1ms or more)", c.Backoff),
		check.Refuse(c.MaxBackoff < c.Backoff, "max_backoff: %s is shorter than backoff", c.MaxBackoff),
		check.Refuse(c.Keep != 0 && c.Keep < leastKeep, "keep: %s is shorter than %s (or 0, for ever)", c.Keep,
			leastKeep),
	)
}

// pause is how long to wait after the n-th failed attempt (from 1).
func (c Config) pause(n int) time.Duration {
	d := c.Backoff
	for ; n > 1 && d < c.MaxBackoff; n-- {
		d *= 2
	}
	return min(d, c.MaxBackoff)
}
