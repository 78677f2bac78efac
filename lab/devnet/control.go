package devnet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/lab/devnet/pricefeed"
)

// Record is how to reach and use this devnet.
func (d *Devnet) Record() Record { return *d.record.Load() }

// RPC is the chain's HTTP address.
func (d *Devnet) RPC() string { return d.record.Load().RPCURL }

// WS is the chain's WebSocket address.
func (d *Devnet) WS() string { return d.record.Load().WSURL }

// Feed is the price feed's address.
func (d *Devnet) Feed() string { return d.record.Load().FeedURL }

// Deployment is where the exchange lives; an upgrade makes another one.
func (d *Devnet) Deployment() *exchange.Deployment { return &d.record.Load().Deployment }

// Prices is the price feed itself.
func (d *Devnet) Prices() *pricefeed.Feed { return d.feed }

// Node is the chain itself, for faults and for blocks on demand.
func (d *Devnet) Node() *evmnode.Node { return d.node }

// Reorg replaces the newest depth blocks.
func (d *Devnet) Reorg(depth uint64, style evmnode.ForkStyle) (evmnode.Fork, error) {
	return d.node.Reorg(depth, style)
}

// Stall stops the head for a time.
func (d *Devnet) Stall(how time.Duration) { d.node.Stall(how) }

// Resume ends stalls of head and finality.
func (d *Devnet) Resume() { d.node.Resume() }

// Shock moves the price of the token with this symbol at once, by basis points: -2000 takes 20 % off.
func (d *Devnet) Shock(symbol string, points int64) error {
	token, err := d.Deployment().TokenBySymbol(symbol)
	if err != nil {
		return err
	}
	return d.feed.Shock(token.Address, points)
}

// Pin keeps the price of the token with this symbol at so many millionths of a dollar for a whole token, until Unpin.
func (d *Devnet) Pin(symbol string, microUSD int64) error {
	token, err := d.Deployment().TokenBySymbol(symbol)
	if err != nil {
		return err
	}
	return d.feed.Pin(token.Address, exchange.USD30(microUSD, token.Decimals))
}

// Unpin lets the price of the token with this symbol walk again.
func (d *Devnet) Unpin(symbol string) error {
	token, err := d.Deployment().TokenBySymbol(symbol)
	if err != nil {
		return err
	}
	return d.feed.Unpin(token.Address)
}

// Trade lets the traders begin new things, or stops them from it.
func (d *Devnet) Trade(on bool) {
	if d.traders != nil {
		d.traders.Rest(!on)
	}
}

// control has the devnet's own JSON-RPC methods, beside the node's devnet methods.
type control struct{ d *Devnet }

type tokenArgs struct {
	Token   string  `json:"token"`   // Symbol.
	Percent decimal `json:"percent"` // Of shock: at most two decimals.
	USD     decimal `json:"usd"`     // Of pin: for a whole token, at most six decimals.
}

// Shock is devnet_shock {token, percent}.
func (c control) Shock(args tokenArgs) (bool, error) {
	points, err := args.Percent.scaled(2)
	if err != nil {
		return false, fmt.Errorf("percent: %w", err)
	}
	return true, c.d.Shock(args.Token, points)
}

// Pin is devnet_pin {token, usd}.
func (c control) Pin(args tokenArgs) (bool, error) {
	micro, err := args.USD.scaled(6)
	if err != nil {
		return false, fmt.Errorf("usd: %w", err)
	}
	return true, c.d.Pin(args.Token, micro)
}

// Unpin is devnet_unpin {token}.
func (c control) Unpin(args tokenArgs) (bool, error) { return true, c.d.Unpin(args.Token) }

// Trade is devnet_trade {on}.
func (c control) Trade(args struct {
	On bool `json:"on"`
}) bool {
	c.d.Trade(args.On)
	return true
}

// Deployment is devnet_deployment.
func (c control) Deployment() *Record { return c.d.record.Load() }

// decimal is a decimal number as it was written, in JSON with or without quotes.
type decimal string

// UnmarshalJSON implements json.Unmarshaler.
func (d *decimal) UnmarshalJSON(raw []byte) error {
	*d = decimal(strings.Trim(string(raw), `"`))
	return nil
}

// scaled is the number times 10^places, exactly.
func (d decimal) scaled(places int) (int64, error) {
	whole, fraction, _ := strings.Cut(string(d), ".")
	if len(fraction) > places || strings.ContainsAny(fraction, "+-") {
		return 0, fmt.Errorf("%q is not a number with at most %d decimals", string(d), places)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", places-len(fraction)), 10, 64)
	if err != nil || strings.TrimLeft(whole, "+-") == "" {
		return 0, errors.Join(fmt.Errorf("%q is not a number", string(d)), err)
	}
	return n, nil
}
