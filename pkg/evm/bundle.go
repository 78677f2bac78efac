package evm

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// The kinds of private endpoints.
const (
	kindTransaction = "transaction" // it takes transactions as a node does
	kindBundle      = "bundle"      // a block builder's, which takes bundles of transactions
)

// methodBundle is how builders of BSC take bundles.
const methodBundle = "eth_sendBundle"

// bundle is one transaction for a builder to put into a block as it is. It is not put in where it would revert: none of
// it is named as one that may. What is left out the builder chooses: 48 Club and BlockRazor keep a bundle for 100
// blocks, and the builder of bnb-chain/bsc (internal/ethapi/api_bundle.go) for 5 minutes.
//
//   - https://docs.48.club/puissant-builder/send-bundle
//   - https://blockrazor.gitbook.io/blockrazor/bsc/block-builder/send-bundle
type bundle struct {
	Transactions []hexBytes `json:"txs"`
	// MaxTimestamp is the last second (Unix, of a block) in which it may be mined.
	MaxTimestamp uint64 `json:"maxTimestamp,omitempty"`
}

// sendBundle gives a transaction to a builder, as a bundle of one that is not mined after the second of untilMs, 0 for
// no such bound. The answer, the bundle's name at the builder, does not show whether it will be mined.
func (e *endpoint) sendBundle(ctx context.Context, raw []byte, untilMs uint64) error {
	_, err := e.ask(ctx, methodBundle, bundle{[]hexBytes{raw}, (untilMs + 999) / 1000})
	return err
}

// checkKinds reports why the kinds of private endpoints cannot work.
func (c Config) checkKinds() error {
	if n := len(c.PrivateKinds); n > 0 && n != len(c.PrivateURLs) {
		return fmt.Errorf("private_kinds: there are %d for %d private_urls (one for each, or none)", n,
			len(c.PrivateURLs))
	}
	var problems []error
	for i, kind := range c.PrivateKinds {
		if !slices.Contains([]string{kindTransaction, kindBundle}, kind) {
			problems = append(problems, fmt.Errorf("private_kinds: number %d is %q (there are %s and %s)", i+1, kind,
				kindTransaction, kindBundle))
		}
	}
	return errors.Join(problems...)
}

// Public is the configuration without its private endpoints.
func (c Config) Public() Config {
	c.PrivateURLs, c.PrivateHeaders, c.PrivateKinds = nil, nil, nil
	return c
}

// Only is the configuration with those of its public endpoints that keep says, and the header of each.
func (c Config) Only(keep func(i int) bool) Config {
	urls, headers := c.URLs, c.Headers
	c.URLs, c.Headers = nil, nil
	for i, u := range urls {
		if !keep(i) {
			continue
		}
		c.URLs = append(c.URLs, u)
		if len(headers) > 0 {
			c.Headers = append(c.Headers, headers[i])
		}
	}
	return c
}
