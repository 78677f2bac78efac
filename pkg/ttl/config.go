package ttl

import "time"

// How much one turn does at most before it yields, so that other work of the same loop proceeds.
const (
	maxRetries  = 10
	maxExpiries = 50
)

// Config has the delays and the number of retries of a queue.
type Config struct {
	RetryDelay time.Duration // how long after a failure an entry is tried again
	// MaxRetryDelay lets the delay double with each failure of an entry, up to this cap (TTL-10); 0 = it stays the
	// same.
	MaxRetryDelay time.Duration
	MaxAttempts   int           // failures after which an entry is given up; 0 = never
	IdleDelay     time.Duration // how long to sleep when nothing waits
}

// DefaultConfig tries again every second, for ever (TTL-3).
func DefaultConfig() Config { return Config{RetryDelay: time.Second, IdleDelay: time.Second} }

// delay is how long to wait after the n-th failure of an entry (from 1).
func (c Config) delay(n uint32) time.Duration {
	d := c.RetryDelay
	for ; n > 1 && d < c.MaxRetryDelay; n-- {
		d *= 2
	}
	return max(min(d, c.MaxRetryDelay), c.RetryDelay)
}

// exhausted reports whether an entry that failed n times is to be given up.
func (c Config) exhausted(n uint32) bool { return c.MaxAttempts > 0 && int(n) >= c.MaxAttempts }
