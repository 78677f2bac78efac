package source

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/setting/secret"
)

// Plugin is one kind of service. It lies in a folder of its own below this one.
type Plugin struct {
	// Kind is what tables name it by, and the name of its folder.
	Kind string
	// Needs are the keys that a table must give, Knows those that it may give beside them: of url, stream_url, key,
	// secret and provider.
	Needs, Knows []string
	// Feed validates a token's name at the service, and returns what is wrong with it. It is nil where tokens are named
	// by their address, and where none are named all are meant.
	Feed func(feed string) error
	// Open returns the source of a valid table. Nothing is asked yet. The table's durations are set.
	Open func(t Table, env Env) price.Source
	// Adjusts is what the exchange's provider makes of the prices; none where it takes them as they are.
	Adjusts Adjustment
}

// Env is what a source is given to ask with.
type Env struct {
	Client  *Client       // of the table's url
	Node    Caller        // the chain
	Timeout time.Duration // how long one request may take
	// DataStore is the exchange's store of parameters; zero where it is not known.
	DataStore chain.Address
}

// Caller executes calls on the state after a block and forgets them.
type Caller interface {
	Head(ctx context.Context) (chain.BlockRef, error)
	Call(ctx context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error)
}

// Table is one [[source]]: a service and what is asked of it.
type Table struct {
	Name      string        `toml:"name" help:"what metrics, logs and reports call it; unique"`
	Kind      string        `toml:"kind" help:"which plug-in reads it; one that does not exist is answered with the list"`
	URL       secret.URL    `toml:"url" help:"address of its HTTP interface, http(s); none for an aggregator, which is asked through the chain's endpoints"`
	StreamURL secret.URL    `toml:"stream_url" help:"streams only: address of its WebSocket, ws(s); empty = it is polled"`
	Key       secret.String `toml:"key" help:"streams: the API key, a UUID"`
	Secret    secret.String `toml:"secret" help:"streams only: the API secret that requests are signed with"`
	Provider  chain.Address `toml:"provider" help:"the exchange's oracle provider that takes its reports; devnet reports name theirs"`
	Interval  time.Duration `toml:"interval" help:"how often it is asked if it does not push; 0 = as all"`
	MaxAge    time.Duration `toml:"max_age" help:"the bound of its prices' age; 0 = as all (an aggregator needs its heartbeat)"`
	FailAfter time.Duration `toml:"fail_after" help:"how long it may be silent before the next steps in; 0 = as all"`
	Tokens    []Token       `toml:"token" help:"what it is asked for; devnet and gmx: none = everything it has"`
}

// Token is one [[source.token]]: a token and how the service calls it.
type Token struct {
	Address      chain.Address `toml:"address" help:"the token"`
	Feed         string        `toml:"feed" help:"streams: the 32-byte feed id; aggregator: the contract's address; tokens may share one"`
	Decimals     uint8         `toml:"decimals" help:"decimals of the token"`
	FeedDecimals uint8         `toml:"feed_decimals" help:"decimals of the feed's prices; 0 = 18 for streams, 8 for an aggregator"`
}

// Wanted are the tokens a source is asked for; none means all.
type Wanted map[chain.Address]bool

// Wanted returns the tokens that the table names.
func (t Table) Wanted() Wanted {
	w := Wanted{}
	for _, token := range t.Tokens {
		w[token.Address] = true
	}
	return w
}

// ByFeed returns the tokens of each feed, and the feeds, each once, in the order of the table: several tokens may have
// one feed, as a coin and what is wrapped of it. Feeds are told by 32 bytes; the table has been checked.
func (t Table) ByFeed() (tokens map[chain.Hash][]Token, feeds []chain.Hash) {
	tokens = map[chain.Hash][]Token{}
	for _, token := range t.Tokens {
		id, _ := chain.ParseHash(token.Feed) // was checked
		if len(tokens[id]) == 0 {
			feeds = append(feeds, id)
		}
		tokens[id] = append(tokens[id], token)
	}
	return tokens, feeds
}

// Has reports whether a token is asked for.
func (w Wanted) Has(token chain.Address) bool { return len(w) == 0 || w[token] }

// Word is the size of an ABI word in bytes.
const Word = 32

// DecodeHex reads hexadecimal digits, with 0x before them or without.
func DecodeHex(text string) ([]byte, error) { return hex.DecodeString(strings.TrimPrefix(text, "0x")) }
