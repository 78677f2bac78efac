// Package devnet reads the price service of the demo's exchange.
package devnet

import (
	"context"
	"fmt"

	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
)

// Plugin is this kind of service: reports are pushed, and name their provider.
var Plugin = source.Plugin{
	Kind: "devnet", Needs: []string{"url"}, Knows: []string{"provider"},
	Open: func(t source.Table, env source.Env) price.Source {
		return &service{client: env.Client, wanted: t.Wanted()}
	},
}

// service is /v1/stream, each event a JSON list of token, provider, data, minPrice, maxPrice, timestampMs, with prices
// as decimal strings and data in hexadecimal. Events are numbered, and the service replays what came after a number.
type service struct {
	client *source.Client
	wanted source.Wanted
	lastID string
}

// Run implements price.Source.
func (d *service) Run(ctx context.Context, take price.Take) error {
	return d.client.Wrap(d.client.Listen(ctx, d.lastID, func(id, data string) error {
		reports, err := decode([]byte(data), d.wanted)
		if err != nil {
			return err
		}
		take(reports, nil)
		d.lastID = id
		return nil
	}, "v1", "stream"))
}

func decode(raw []byte, wanted source.Wanted) ([]price.Report, error) {
	var answer []struct {
		Token       chain.Address `json:"token"`
		Provider    chain.Address `json:"provider"`
		Data        string        `json:"data"`
		MinPrice    chain.Uint    `json:"minPrice"`
		MaxPrice    chain.Uint    `json:"maxPrice"`
		TimestampMs uint64        `json:"timestampMs"`
	}
	if err := gojson.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	reports := make([]price.Report, 0, len(answer))
	for _, r := range answer {
		data, err := source.DecodeHex(r.Data)
		if err != nil {
			return nil, fmt.Errorf("reading the answer: data of %s: %w", r.Token, err)
		}
		if wanted.Has(r.Token) {
			reports = append(reports, price.Report{Token: r.Token, Provider: r.Provider, Data: data, Min: r.MinPrice,
				Max: r.MaxPrice, TimeMs: r.TimestampMs})
		}
	}
	return reports, nil
}
