package evm

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
)

// Config is how to reach a chain. Start from DefaultConfig.
type Config struct {
	URLs []secret.URL `toml:"urls" help:"JSON-RPC endpoints, http(s) or ws(s); reads go to the best at the moment, transactions to all"`
	// Headers are what endpoints know us by that want no key in their address.
	Headers []secret.String `toml:"headers" help:"headers for urls, NAME: VALUE each and in the same order; - for one that wants none"`
	// PrivateURLs take transactions that must not be seen before they are mined, and nothing else.
	PrivateURLs []secret.URL `toml:"private_urls" help:"endpoints of block builders and relays, used for private transactions only"`
	// PrivateHeaders are what private endpoints know us by.
	PrivateHeaders []secret.String `toml:"private_headers" help:"headers for private_urls, NAME: VALUE each and in the same order; - for one that wants none"`
	// PrivateKinds are what private endpoints take.
	PrivateKinds []string `toml:"private_kinds" help:"what each of private_urls takes, in the same order: transaction (eth_sendRawTransaction) or bundle (eth_sendBundle); empty = all take transactions"`
	// Forks are what nodes have to be ready for.
	Forks []string `toml:"forks" help:"forks that nodes have to be ready for, in place of those that are known of BSC: NAME TIME SOFTWARE>=VERSION ... each"`
	// PollInterval is how long no head may have been announced before one is asked for: a block's time.
	PollInterval time.Duration `toml:"-"`
	// RequestTimeout: how long one request may take.
	RequestTimeout time.Duration `toml:"-"`
	// HedgeAfter bounds the wait for one endpoint's answer before a second is asked too; it is shorter where the
	// endpoint is usually faster.
	HedgeAfter time.Duration `toml:"-"`
	// MaxLag: how far behind the best head, in chain time, an endpoint may be before it comes last.
	MaxLag time.Duration `toml:"-"`
	// SlowAfter: how long the answers of an endpoint may take on average before it comes last.
	SlowAfter time.Duration `toml:"-"`
	// ProbeInterval is how often every endpoint is asked for its head, so that it is known who is good before it is
	// needed.
	ProbeInterval time.Duration `toml:"-"`
	// Cooldown is how long an endpoint is not asked after it was caught in a wrong answer, or lacked a method. It
	// doubles each time the same one is caught, up to 64 times.
	Cooldown time.Duration `toml:"-"`
}

// DefaultConfig is a BSC node on this machine, asked at every block.
func DefaultConfig() Config {
	return Config{
		URLs:           []secret.URL{secret.MustURL("http://127.0.0.1:8545")},
		PollInterval:   450 * time.Millisecond,
		RequestTimeout: transport.Mute,
		HedgeAfter:     300 * time.Millisecond,
		MaxLag:         5 * time.Second,
		SlowAfter:      2 * time.Second,
		ProbeInterval:  5 * time.Second,
		Cooldown:       time.Minute,
	}
}

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	_, forks := forksOf(0, c.Forks)
	return errors.Join(forks,
		check.Refuse(len(c.URLs) == 0, "urls: is empty (name at least one endpoint)"),
		checkURLs("urls", c.URLs), checkURLs("private_urls", c.PrivateURLs), c.checkHeaders(),
		c.checkKinds(),
	)
}

func checkURLs(name string, list []secret.URL) error {
	var problems []error
	for i, u := range list {
		if !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme(u)) {
			problems = append(problems, fmt.Errorf("%s: number %d is %q, not an http(s) or ws(s) address", name, i+1,
				u))
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

// announces reports whether an endpoint can push heads.
func announces(u secret.URL) bool { return scheme(u) == "ws" || scheme(u) == "wss" }
