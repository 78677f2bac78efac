package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/secret"
)

// Config is the [price] settings: the sources of reports, and the bounds that reports must keep.
type Config struct {
	URL            secret.URL     `toml:"url" help:"address of the demo exchange's price service, http(s); other services are source tables; neither = no prices"`
	Interval       time.Duration  `toml:"interval" help:"how often a service that does not push is asked"`
	RequestTimeout time.Duration  `toml:"request_timeout" help:"how long one request may take"`
	Sources        []Table        `toml:"source" help:"services that publish prices, in order of preference"`
	Gates          price.Gates    `toml:"gates"`
	Failover       price.Failover `toml:"failover"`
}

// DefaultConfig lacks the sources.
func DefaultConfig() Config {
	return Config{
		Interval: 250 * time.Millisecond, RequestTimeout: 2 * time.Second, Gates: price.DefaultGates(),
		Failover: price.DefaultFailover(),
	}
}

// Table is one [[source]]: a service and what is asked of it.
type Table struct {
	Name      string        `toml:"name" help:"what metrics, logs and reports call it; unique"`
	Kind      string        `toml:"kind" help:"devnet, gmx, streams, hermes or aggregator"`
	URL       secret.URL    `toml:"url" help:"address of its HTTP interface, http(s); none for an aggregator, which is asked through the chain's endpoints"`
	StreamURL secret.URL    `toml:"stream_url" help:"streams only: address of its WebSocket, ws(s); empty = it is polled"`
	Key       secret.String `toml:"key" help:"streams: the API key, a UUID; hermes: the bearer token, if it wants one"`
	Secret    secret.String `toml:"secret" help:"streams only: the API secret that requests are signed with"`
	Provider  chain.Address `toml:"provider" help:"the exchange's oracle provider that takes its reports; devnet reports name theirs"`
	Interval  time.Duration `toml:"interval" help:"how often it is asked if it does not push; 0 = as all"`
	MaxAge    time.Duration `toml:"max_age" help:"the bound of its reports' age; 0 = as all (an aggregator needs its heartbeat)"`
	FailAfter time.Duration `toml:"fail_after" help:"how long it may be silent before the next steps in; 0 = as all (an aggregator needs its heartbeat)"`
	Tokens    []Token       `toml:"token" help:"what it is asked for; devnet and gmx: none = everything it has"`
}

// Token is one [[source.token]]: a token and how the service calls it.
type Token struct {
	Address      chain.Address `toml:"address" help:"the token"`
	Feed         string        `toml:"feed" help:"streams and hermes: the 32-byte feed id; aggregator: the contract's address"`
	Decimals     uint8         `toml:"decimals" help:"decimals of the token"`
	FeedDecimals uint8         `toml:"feed_decimals" help:"decimals of the feed's prices; 0 = 18 for streams, 8 for an aggregator; hermes reports its own"`
}

// tables are the sources, the short form included.
func (c Config) tables() []Table {
	if c.URL.IsSet() {
		return []Table{{Name: devnetKind, Kind: devnetKind, URL: c.URL}}
	}
	return c.Sources
}

// IsSet tells whether any source is configured.
func (c Config) IsSet() bool { return len(c.tables()) > 0 }

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	var problems []error
	if c.URL.IsSet() && len(c.Sources) > 0 {
		problems = append(problems, errors.New("url: is given beside source tables (make it one of them, of kind "+
			"devnet)"))
	}
	problems = append(problems, checkScheme("url", c.URL, "http", "https"),
		between("interval", c.Interval, 10*time.Millisecond, time.Minute),
		between("request_timeout", c.RequestTimeout, 10*time.Millisecond, time.Minute))
	names := map[string]bool{}
	for i, s := range c.Sources {
		if names[s.Name] {
			problems = append(problems, fmt.Errorf("source[%d].name: %q is taken by another source", i, s.Name))
		}
		names[s.Name] = true
	}
	return errors.Join(problems...)
}

func between(name string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%s: %s is not between %s and %s", name, d, least, most)
	}
	return nil
}

// checkScheme is nil for no address and for one with one of the schemes.
func checkScheme(name string, u secret.URL, schemes ...string) error {
	scheme, _, _ := strings.Cut(u.Reveal(), "://")
	if u.IsSet() && !slices.Contains(schemes, strings.ToLower(scheme)) {
		return fmt.Errorf("%s: %s is not an address of %s", name, u, strings.Join(schemes, " or "))
	}
	return nil
}

// Validate names every setting of a source that cannot work.
func (t Table) Validate() error {
	if !slices.Contains(kinds, t.Kind) {
		return fmt.Errorf("kind: %q is not one of %s", t.Kind, strings.Join(kinds, ", "))
	}
	problems := []error{checkScheme("url", t.URL, "http", "https"), checkScheme("stream_url", t.StreamURL, "ws", "wss")}
	for _, rule := range []struct {
		broken bool
		line   string
	}{
		{t.Name == "", "name: empty (metrics and logs need one)"},
		{t.Kind != aggregatorKind && !t.URL.IsSet(), "url: empty (the service's address)"},
		{t.Kind == aggregatorKind && t.URL.IsSet(), "url: an aggregator is asked through the chain's endpoints " +
			"(drop it)"},
		{t.Kind != streamsKind && t.StreamURL.IsSet(), "stream_url: only streams has a WebSocket (drop it)"},
		{t.Kind != streamsKind && t.Secret.IsSet(), "secret: only requests to streams are signed (drop it)"},
		{t.Kind != streamsKind && t.Kind != hermesKind && t.Key.IsSet(), "key: only streams and hermes know one " +
			"(drop it)"},
		{t.Kind == streamsKind && !t.Key.IsSet(), "key: empty (streams answers nobody without one)"},
		{t.Kind == streamsKind && !t.Secret.IsSet(), "secret: empty (streams answers nobody without one)"},
		{t.Kind != devnetKind && t.Provider.IsZero(), "provider: no address given (the oracle asks each report's " +
			"provider)"},
		{t.needsTokens() && len(t.Tokens) == 0, "token: none given (name each token, its feed and its decimals)"},
	} {
		if rule.broken {
			problems = append(problems, errors.New(rule.line))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"interval", t.Interval, 10 * time.Millisecond}, {"max_age", t.MaxAge, time.Second},
		{"fail_after", t.FailAfter, 100 * time.Millisecond}} {
		if d.value != 0 {
			problems = append(problems, between(d.name, d.value, d.least, 48*time.Hour))
		}
	}
	return errors.Join(append(problems, t.tokens()...)...)
}

// needsTokens tells whether the service gives nothing unless tokens are named.
func (t Table) needsTokens() bool {
	return t.Kind == streamsKind || t.Kind == hermesKind || t.Kind == aggregatorKind
}

func (t Table) tokens() (problems []error) {
	seen, feeds := map[chain.Address]bool{}, map[string]bool{}
	for i, token := range t.Tokens {
		key := fmt.Sprintf("token[%d]", i)
		feed := strings.ToLower(token.Feed)
		switch {
		case token.Address.IsZero():
			problems = append(problems, fmt.Errorf("%s.address: no address given", key))
		case seen[token.Address]:
			problems = append(problems, fmt.Errorf("%s.address: %s is there twice", key, token.Address))
		case token.Decimals > 36 || token.FeedDecimals > 36:
			problems = append(problems, fmt.Errorf("%s.decimals: no token or feed has more than 36", key))
		case t.needsTokens() && token.feedProblem(t.Kind) != "":
			problems = append(problems, fmt.Errorf("%s.feed: %q %s", key, token.Feed, token.feedProblem(t.Kind)))
		case t.needsTokens() && feeds[feed]:
			problems = append(problems, fmt.Errorf("%s.feed: %s is another token's too", key, token.Feed))
		}
		seen[token.Address], feeds[feed] = true, true
	}
	return problems
}

// feedProblem says why the feed's name is not one of the kind's.
func (t Token) feedProblem(kind string) string {
	if kind == aggregatorKind {
		if a, err := chain.ParseAddress(t.Feed); err != nil || a.IsZero() {
			return "is not a contract's address"
		}
		return ""
	}
	id, err := chain.ParseHash(t.Feed)
	switch {
	case err != nil || id.IsZero():
		return "is not a feed id of 32 bytes, 0x and 64 digits"
	case kind == streamsKind && feedVersion(id) != 3:
		return fmt.Sprintf("is a feed of report schema %d (only schema 3, ids that begin with 0x0003, is read)",
			feedVersion(id))
	}
	return ""
}
