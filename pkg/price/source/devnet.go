package source

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// devnet reads the demo exchange's price service: /v1/stream, or /v1/reports where there is no stream. Both show a JSON
// list of token, provider, data, minPrice, maxPrice, timestampMs, with prices as decimal strings and data in
// hexadecimal. Events are numbered, and the service replays what came after a number.
type devnet struct {
	client   *client
	interval time.Duration
	idle     time.Duration
	wanted   wanted

	lastID string
}

// Run implements price.Source.
func (d *devnet) Run(ctx context.Context, take price.Take) error {
	err := d.client.listen(ctx, d.idle, d.lastID, nil, func(ev event) error {
		reports, err := decodeDevnet([]byte(ev.data), d.wanted)
		if err != nil {
			return err
		}
		take(reports, nil)
		d.lastID = ev.id
		return nil
	}, "v1", "stream")
	if isNotFound(err) {
		err = d.poll(ctx, take)
	}
	return d.client.wrap(err)
}

func (d *devnet) poll(ctx context.Context, take price.Take) error {
	tag := ""
	return poll(ctx, d.interval, func(ctx context.Context) error {
		raw, newest, err := d.client.getChanged(ctx, tag, nil, "v1", "reports")
		if err != nil {
			return err
		}
		var reports []price.Report
		if raw != nil {
			if reports, err = decodeDevnet(raw, d.wanted); err != nil {
				return err
			}
		}
		tag = newest
		take(reports, nil)
		return nil
	})
}

func decodeDevnet(raw []byte, wanted wanted) ([]price.Report, error) {
	var answer []struct {
		Token       chain.Address `json:"token"`
		Provider    chain.Address `json:"provider"`
		Data        string        `json:"data"`
		MinPrice    perp.Uint     `json:"minPrice"`
		MaxPrice    perp.Uint     `json:"maxPrice"`
		TimestampMs uint64        `json:"timestampMs"`
	}
	if err := gojson.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	reports := make([]price.Report, 0, len(answer))
	for _, r := range answer {
		data, err := decodeHex(r.Data)
		if err != nil {
			return nil, fmt.Errorf("reading the answer: data of %s: %w", r.Token, err)
		}
		if wanted.has(r.Token) {
			reports = append(reports, price.Report{Token: r.Token, Provider: r.Provider, Data: data, Min: r.MinPrice,
				Max: r.MaxPrice, TimeMs: r.TimestampMs})
		}
	}
	return reports, nil
}

func decodeHex(text string) ([]byte, error) { return hex.DecodeString(strings.TrimPrefix(text, "0x")) }
