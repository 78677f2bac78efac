package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/secret"
)

// token is what a source of prices has to know of a token.
type token struct {
	Address  chain.Address
	Decimals int
	Feed     chain.Hash
	provider chain.Address
}

// priceSource is one table of prices.
type priceSource struct {
	Kind     string
	URL      string
	Provider chain.Address
	Tokens   []token
}

// Streams reports whether it is Chainlink's Data Streams.
func (p priceSource) Streams() bool { return p.Kind == "streams" }

// priceKind reads KIND=URL.
func priceKind(text string) (p priceSource, err error) {
	p.Kind, p.URL, _ = strings.Cut(text, "=")
	if p.Kind != "streams" && p.Kind != "gmx" && p.Kind != "devnet" {
		return p, fmt.Errorf("%q is none of streams, gmx and devnet (others: deploy/compose/region.toml.example)",
			p.Kind)
	}
	if p.Kind != "streams" {
		_, err = secret.ParseURL(p.URL)
	}
	return p, err
}

// dial connects to the chain that the first endpoint names.
func (r *region) dial(ctx context.Context) (*evm.Client, error) {
	var err error
	if r.ChainID, err = evm.ChainID(ctx, r.Endpoints[0]); err != nil {
		return nil, notAsked(err)
	}
	cfg := evm.DefaultConfig()
	cfg.URLs = r.Endpoints
	node, err := evm.Dial(ctx, r.ChainID, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	return node, notAsked(err)
}

// readVenue finds the exchange and the signers' roles. others names whoever else executes liquidations there.
func (r *region) readVenue(ctx context.Context, node *evm.Client, contract chain.Address) (others string, err error) {
	final, err := node.Finalized(ctx)
	if err != nil {
		return "", notAsked(err)
	}
	at := node.Settled(final.Hash)
	if r.Store, err = gmx.StoreOf(ctx, at, contract); err != nil {
		return "", err
	}
	venue, err := gmx.Locate(ctx, node, r.Store, r.Signers...)
	if err != nil {
		return "", err
	}
	if h, is := venue.Handler(job.Order); is {
		r.Oracle = h.Oracle
	}
	all := func(kind job.Job) bool {
		return !slices.ContainsFunc(r.Signers, func(s chain.Address) bool { return venue.Lacks(s, kind) != "" })
	}
	r.Adl, r.Frozen = all(job.Job{Kind: job.Adl}), all(job.Job{Kind: job.Order, Frozen: true})
	holders, err := gmx.Holders(ctx, at, venue.RoleStore, "LIQUIDATION_KEEPER")
	if err != nil {
		return "", err
	}
	holders = slices.DeleteFunc(holders, func(a chain.Address) bool { return slices.Contains(r.Signers, a) })
	if len(holders) > 0 {
		others = " (" + addresses(holders) + " may liquidate as well)"
	}
	return others, r.readTokens(ctx, at)
}

// readTokens reads what sources have to know of the markets' tokens.
func (r *region) readTokens(ctx context.Context, at gmx.Asker) error {
	tokens, err := gmx.MarketTokens(ctx, at, r.Store)
	if err != nil {
		return err
	}
	for _, address := range tokens {
		t := token{Address: address}
		if t.Feed, t.provider, err = gmx.PriceFeed(ctx, at, r.Store, r.Oracle, address); err != nil {
			return err
		}
		if t.Decimals, _, err = gmx.Decimals(ctx, at, address); err != nil {
			return err
		}
		r.Tokens = append(r.Tokens, t)
	}
	return nil
}

// addSources completes the sources of prices: a provider, and what a source of streams is asked for.
func (r *region) addSources(sources []priceSource) error {
	for _, s := range sources {
		if s.Kind != "devnet" {
			for _, t := range r.Tokens {
				if s.Provider.IsZero() {
					s.Provider = t.provider
				}
				if s.Kind == "streams" && !t.Feed.IsZero() {
					s.Tokens = append(s.Tokens, t)
				}
			}
			if s.Provider.IsZero() || s.Kind == "streams" && len(s.Tokens) == 0 {
				return fmt.Errorf("the exchange names no provider, or no feeds, for prices of kind %s: write the "+
					"source by hand (deploy/compose/region.toml.example)", s.Kind)
			}
		}
		r.Sources = append(r.Sources, s)
	}
	return nil
}

// firstBlock looks for the block in which a contract was made, which takes an endpoint with all states.
func firstBlock(ctx context.Context, node *evm.Client, contract chain.Address) (string, error) {
	final, err := node.Finalized(ctx)
	if err != nil {
		return "", err
	}
	there := func(number uint64) (bool, error) {
		hash, err := node.HashAt(ctx, number)
		if err != nil {
			return false, err
		}
		code, err := node.Code(ctx, contract, hash)
		return len(code) > 0, err
	}
	low, high := uint64(0), final.Number // it is at the end and, as it is a contract of somebody, not at the beginning
	for high-low > 1 {
		middle := low + (high-low)/2
		is, err := there(middle)
		if err != nil {
			return "", err
		}
		if is {
			high = middle
		} else {
			low = middle
		}
	}
	if is, err := there(high); err != nil || !is {
		return "", errors.Join(err, errors.New("it is not there"))
	}
	return strconv.FormatUint(high, 10), nil
}

// keystoresOf are the signers whose keystores lie in a folder, by the files' names.
func keystoresOf(folder string) string {
	files, _ := filepath.Glob(filepath.Join(folder, "0x*.json"))
	var signers []string
	for _, file := range files {
		if a, err := chain.ParseAddress(strings.TrimSuffix(filepath.Base(file), ".json")); err == nil {
			signers = append(signers, a.Hex())
		}
	}
	return strings.Join(signers, ",")
}

// addresses writes them with commas between.
func addresses(all []chain.Address) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = a.Hex()
	}
	return strings.Join(texts, ",")
}
