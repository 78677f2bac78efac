package delayed

import (
	"time"

	"perpkeeper/pkg/setting/check"
)

// Config is the [delayed] section.
type Config struct {
	Interval    time.Duration `toml:"interval" help:"how often to look for due work when nothing else tells (10s; up to 2h saves questions and costs delay)"`
	Concurrency int           `toml:"-"` // jobs worked on at once by this process
	Batch       int           `toml:"-"` // due rows listed with one question; a scan takes all of them, batch after batch
	MaxAttempts int           `toml:"-"` // failed attempts after which a job is parked for the operator
	Backoff     time.Duration `toml:"-"` // pause after the first failed attempt; it doubles with each
	MaxBackoff  time.Duration `toml:"-"` // longest pause between two attempts
	Keep        time.Duration `toml:"-"` // how long after it was done a release or an expiry stays in the database; 0 = for ever
}

// DefaultConfig scans every 10 s, works on two jobs at once (DLY-4, DLY-8), and keeps three months.
func DefaultConfig() Config {
	return Config{Interval: 10 * time.Second, Concurrency: 2, Batch: 100, MaxAttempts: 10, Backoff: 10 * time.Second,
		MaxBackoff: 10 * time.Minute, Keep: 90 * 24 * time.Hour}
}

// Validate names the setting that cannot work.
func (c Config) Validate() error {
	return check.Between("interval", c.Interval, 100*time.Millisecond, 2*time.Hour)
}

// pause is how long to wait after the n-th failed attempt (from 1).
func (c Config) pause(n int) time.Duration {
	d := c.Backoff
	for ; n > 1 && d < c.MaxBackoff; n-- {
		d *= 2
	}
	return min(d, c.MaxBackoff)
}
