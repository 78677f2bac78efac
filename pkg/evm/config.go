package evm

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/secret"
)

// Config says how to reach a chain. Start from DefaultConfig.
type Config struct {
	URLs []secret.URL `toml:"urls" help:"JSON-RPC endpoints, http(s) or ws(s); reads prefer the first that answers, transactions go to all"`
	// Genesis tells chains apart that share an id. Zero is not checked.
	Genesis chain.Hash `toml:"genesis" help:"hash of block 0 every endpoint must have; all zero = not checked"`
	// PollInterval is how long no head may have been announced before one is asked for.
	PollInterval   time.Duration `toml:"poll_interval" help:"how often to ask for the head when no endpoint announces one"`
	RequestTimeout time.Duration `toml:"request_timeout" help:"how long one request may take"`
}

// DefaultConfig is a BSC node on this machine, asked at every block.
func DefaultConfig() Config {
	return Config{
		URLs:           []secret.URL{secret.MustURL("http://127.0.0.1:8545")},
		PollInterval:   450 * time.Millisecond,
		RequestTimeout: 5 * time.Second,
	}
}

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	var problems []error
	if len(c.URLs) == 0 {
		problems = append(problems, errors.New("urls: is empty (name at least one endpoint)"))
	}
	for i, u := range c.URLs {
		if !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme(u)) {
			problems = append(problems, fmt.Errorf("urls: number %d is %q, not an http(s) or ws(s) address", i+1, u))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"poll_interval", c.PollInterval}, {"request_timeout", c.RequestTimeout}} {
		if d.value < 10*time.Millisecond || d.value > time.Hour {
			problems = append(problems, fmt.Errorf("%s: %s is not between 10ms and 1h", d.name, d.value))
		}
	}
	return errors.Join(problems...)
}

func scheme(u secret.URL) string {
	parsed, err := url.Parse(u.Reveal())
	if err != nil {
		return ""
	}
	return parsed.Scheme
}

// announces tells whether an endpoint can push heads.
func announces(u secret.URL) bool { return scheme(u) == "ws" || scheme(u) == "wss" }
