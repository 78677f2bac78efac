package evm

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/check"
	"perpkeeper/pkg/secret"
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
	// Genesis distinguishes chains that share an id. Zero is not checked.
	Genesis chain.Hash `toml:"genesis" help:"hash of block 0 every endpoint must have; all zero = not checked"`
	// PollInterval is how long no head may have been announced before one is asked for.
	PollInterval   time.Duration `toml:"poll_interval" help:"how often to ask for the head when no endpoint announces one"`
	RequestTimeout time.Duration `toml:"request_timeout" help:"how long one request may take"`
	// HedgeAfter bounds the wait for one endpoint's answer before a second is asked too; it is shorter where the
	// endpoint is usually faster.
	HedgeAfter time.Duration `toml:"hedge_after" help:"how long to wait for an answer at most before another endpoint is asked as well"`
	MaxLag     time.Duration `toml:"max_lag" help:"how far behind the best head, in chain time, an endpoint may be before it comes last"`
	SlowAfter  time.Duration `toml:"slow_after" help:"how long the answers of an endpoint may take on average before it comes last"`
	// ProbeInterval is how often every endpoint is asked for its head, so that it is known who is good before it is
	// needed.
	ProbeInterval time.Duration `toml:"probe_interval" help:"how often every endpoint is probed"`
	// Cooldown doubles each time the same endpoint is caught, up to 64 times.
	Cooldown     time.Duration `toml:"cooldown" help:"how long an endpoint is not asked after it was caught in a wrong answer, or lacked a method"`
	RateLimit    int           `toml:"rate_limit" help:"requests per second to each endpoint; 0 = as many as it takes"`
	LogsRange    uint64        `toml:"logs_range" help:"old, and accepted for one release: nothing reads logs by ranges of blocks any more; 0 = not given"`
	HeadersBatch int           `toml:"headers_batch" help:"block headers asked for in one batch at most; less is learnt for each endpoint"`
}

// DefaultConfig is a BSC node on this machine, asked at every block.
func DefaultConfig() Config {
	return Config{
		URLs:           []secret.URL{secret.MustURL("http://127.0.0.1:8545")},
		PollInterval:   450 * time.Millisecond,
		RequestTimeout: 5 * time.Second,
		HedgeAfter:     300 * time.Millisecond,
		MaxLag:         5 * time.Second,
		SlowAfter:      2 * time.Second,
		ProbeInterval:  5 * time.Second,
		Cooldown:       time.Minute,
		HeadersBatch:   100,
	}
}

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	between := func(key string, d time.Duration) error { return check.Between(key, d, 10*time.Millisecond, time.Hour) }
	return errors.Join(
		check.Refuse(len(c.URLs) == 0, "urls: is empty (name at least one endpoint)"),
		checkURLs("urls", c.URLs), checkURLs("private_urls", c.PrivateURLs), c.checkHeaders(),
		c.checkKinds(),
		between("poll_interval", c.PollInterval), between("request_timeout", c.RequestTimeout),
		between("hedge_after", c.HedgeAfter), between("max_lag", c.MaxLag), between("slow_after", c.SlowAfter),
		between("probe_interval", c.ProbeInterval), between("cooldown", c.Cooldown),
		check.Refuse(c.RateLimit < 0, "rate_limit: %d is negative (0 = as many requests as the endpoint takes)",
			c.RateLimit),
		check.Between("headers_batch", c.HeadersBatch, 1, 1000),
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
