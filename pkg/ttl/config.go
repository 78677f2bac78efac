package ttl

import (
	"errors"
	"time"

	"perpkeeper/pkg/check"
)

// How much one turn does at most before it yields, so that other work of the same loop proceeds.
const (
	maxRetries  = 10
	maxExpiries = 50
)

// Config has the delays and the number of retries of a queue.
type Config struct {
	RetryDelay time.Duration `toml:"retry_delay" help:"how long after a failure an entry is tried again"`
	// MaxRetryDelay lets the delay double with each failure of an entry, up to this cap (TTL-10).
	MaxRetryDelay time.Duration `toml:"max_retry_delay" help:"cap of the retry delay, which doubles with each failure; 0 = it stays the same"`
	MaxAttempts   int           `toml:"max_attempts" help:"failures after which an entry is given up; 0 = never"`
	IdleDelay     time.Duration `toml:"idle_delay" help:"how long to sleep when nothing waits"`
}

// DefaultConfig tries again every second, for ever (TTL-3).
func DefaultConfig() Config { return Config{RetryDelay: time.Second, IdleDelay: time.Second} }

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	return errors.Join(
		check.Refuse(c.RetryDelay < time.Millisecond, "retry_delay: %s is too short (use 1ms or more)", c.RetryDelay),
		check.Refuse(c.MaxRetryDelay != 0 && c.MaxRetryDelay < c.RetryDelay,
			"max_retry_delay: %s is shorter than retry_delay (raise it, or use 0)", c.MaxRetryDelay),
		check.Refuse(c.MaxAttempts < 0, "max_attempts: %d is negative (use 0 for no limit)", c.MaxAttempts),
		check.Refuse(c.IdleDelay < time.Millisecond, "idle_delay: %s is too short (use 1ms or more)", c.IdleDelay),
	)
}

// delay is how long to wait after the n-th failure of an entry (from 1).
func (c Config) delay(n uint32) time.Duration {
	d := c.RetryDelay
	for ; n > 1 && d < c.MaxRetryDelay; n-- {
		d *= 2
	}
	return max(min(d, c.MaxRetryDelay), c.RetryDelay)
}

// exhausted tells whether an entry that failed n times is to be given up.
func (c Config) exhausted(n uint32) bool { return c.MaxAttempts > 0 && int(n) >= c.MaxAttempts }
