package price

import (
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/secret"
)

// Config says where price reports come from.
type Config struct {
	URL            secret.URL    `toml:"url" help:"address of the signed-report service, http(s); empty = no price feed"`
	Interval       time.Duration `toml:"interval" help:"how often to ask for new reports"`
	RequestTimeout time.Duration `toml:"request_timeout" help:"how long one request may take"`
}

// DefaultConfig asks four times a second, once it is told whom.
func DefaultConfig() Config {
	return Config{Interval: 250 * time.Millisecond, RequestTimeout: 2 * time.Second}
}

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	var problems []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"interval", c.Interval}, {"request_timeout", c.RequestTimeout}} {
		if d.value < 10*time.Millisecond || d.value > time.Minute {
			problems = append(problems, fmt.Errorf("%s: %s is not between 10ms and 1m", d.name, d.value))
		}
	}
	return errors.Join(problems...)
}
