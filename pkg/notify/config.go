package notify

import (
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/secret"
)

// Config is the [notify] section. Nothing is posted by default.
type Config struct {
	OwnerURL    secret.URL    `toml:"owner_url" help:"where liquidations are posted to, for the positions' owners; empty = nowhere"`
	OperatorURL secret.URL    `toml:"operator_url" help:"where failed liquidations and the monitor's alarms are posted to; empty = nowhere"`
	Secret      secret.String `toml:"secret" help:"signs what is posted (HMAC-SHA256), so that receivers can tell it from forgeries; 16 characters at least"`
	Timeout     time.Duration `toml:"timeout" help:"how long a receiver may take to answer"`
	// Attempts counts answers that refuse a message. A receiver that does not answer is waited for.
	Attempts   int           `toml:"attempts" help:"after how many refusals a message is set aside as a dead letter; a receiver that is away is waited for"`
	FirstPause time.Duration `toml:"first_pause" help:"longest pause after the first failure; it doubles up to longest_pause"`
	LongPause  time.Duration `toml:"longest_pause" help:"longest pause between two tries"`
}

// DefaultConfig posts nothing, and would give a message up after about a minute of refusals.
func DefaultConfig() Config {
	return Config{Timeout: 5 * time.Second, Attempts: 8, FirstPause: 500 * time.Millisecond,
		LongPause: 30 * time.Second}
}

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	const leastSecret = 16
	var problems []error
	if used := c.OwnerURL.IsSet() || c.OperatorURL.IsSet(); used && len(c.Secret.Reveal()) < leastSecret {
		problems = append(problems, fmt.Errorf("secret: has fewer than %d characters (receivers could not tell our "+
			"messages from others')", leastSecret))
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"timeout", c.Timeout}, {"first_pause", c.FirstPause}, {"longest_pause", c.LongPause}} {
		if d.value <= 0 || d.value > 10*time.Minute {
			problems = append(problems, fmt.Errorf("%s: %s is not between 0 and 10m", d.key, d.value))
		}
	}
	if c.Attempts < 1 || c.Attempts > 1000 {
		problems = append(problems, fmt.Errorf("attempts: %d is not between 1 and 1000", c.Attempts))
	}
	return errors.Join(problems...)
}

// URL is where messages for an audience are posted; empty for nowhere.
func (c Config) URL(a Audience) secret.URL {
	if a == Owner {
		return c.OwnerURL
	}
	return c.OperatorURL
}

func (c Config) policy(onRetry func(attempt int, err error, pause time.Duration)) retry.Policy {
	return retry.Policy{Initial: c.FirstPause, Max: max(c.LongPause, c.FirstPause), OnRetry: onRetry}
}
