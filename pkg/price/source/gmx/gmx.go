// Package gmx reads the signed price API of GMX.
package gmx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
)

// Plugin is this kind of service: it is polled.
var Plugin = source.Plugin{
	Kind: "gmx", Needs: []string{"url", "provider"},
	Open: func(t source.Table, env source.Env) price.Source {
		return &signedPrices{client: env.Client, interval: t.Interval, provider: t.Provider, wanted: t.Wanted()}
	},
}

// signedPrices reads GMX's signed price API, GET /signed_prices/latest: {"signedPrices": […]} with tokenAddress,
// minPriceFull and maxPriceFull (USD with 30 decimals per smallest unit, as decimal strings), blob (the signed Data
// Streams report) and maxBlockTimestamp (its observation time, Unix seconds); isValid false marks a price not to be
// used. Much else in it is null.
type signedPrices struct {
	client   *source.Client
	interval time.Duration
	provider chain.Address
	wanted   source.Wanted
}

// Run implements price.Source.
func (s *signedPrices) Run(ctx context.Context, take price.Take) error {
	return s.client.Wrap(s.client.PollChanged(ctx, s.interval, func(raw []byte) (err error) {
		var reports []price.Report
		var unreadable []error
		if raw != nil {
			reports, unreadable, err = decodeSignedPrices(raw, s.provider, s.wanted)
		}
		if err == nil {
			take(reports, unreadable)
		}
		return err
	}, "signed_prices", "latest"))
}

// signedPrice is one element of the answer.
type signedPrice struct {
	Token  chain.Address `json:"tokenAddress"`
	Symbol string        `json:"tokenSymbol"`
	Min    string        `json:"minPriceFull"`
	Max    string        `json:"maxPriceFull"`
	Second uint64        `json:"maxBlockTimestamp"`
	Blob   string        `json:"blob"`
	Valid  *bool         `json:"isValid"`
	Why    string        `json:"invalidReason"`
}

func decodeSignedPrices(raw []byte, provider chain.Address, wanted source.Wanted) (reports []price.Report,
	unreadable []error,
	err error) {
	var answer struct {
		SignedPrices []signedPrice `json:"signedPrices"`
	}
	if err := gojson.Unmarshal(raw, &answer); err != nil {
		return nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if answer.SignedPrices == nil {
		return nil, nil, errors.New("reading the answer: it has no signedPrices")
	}
	for _, s := range answer.SignedPrices {
		if !wanted.Has(s.Token) {
			continue
		}
		r, err := s.report()
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("price of %s (%s): %w", s.Token, s.Symbol, err))
			continue
		}
		r.Provider = provider
		reports = append(reports, r)
	}
	return reports, unreadable, nil
}

func (s signedPrice) report() (r price.Report, err error) {
	if s.Valid != nil && !*s.Valid {
		return r, fmt.Errorf("the service marks it invalid: %q", s.Why)
	}
	if s.Second > math.MaxUint64/1000 {
		return r, fmt.Errorf("second %d is no time", s.Second)
	}
	r = price.Report{Token: s.Token, TimeMs: s.Second * 1000}
	if r.Min, err = chain.ParseUint(s.Min); err != nil {
		return r, fmt.Errorf("minPriceFull: %w", err)
	}
	if r.Max, err = chain.ParseUint(s.Max); err != nil {
		return r, fmt.Errorf("maxPriceFull: %w", err)
	}
	if r.Data, err = source.DecodeHex(s.Blob); err != nil {
		return r, fmt.Errorf("blob: %w", err)
	}
	if len(r.Data) == 0 {
		return r, errors.New("blob: empty")
	}
	return r, nil
}
