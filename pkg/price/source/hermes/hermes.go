// Package hermes reads Hermes, the price service of Pyth.
package hermes

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
)

// Plugin is this kind of service: prices are pushed, and key is the bearer token, if it wants one.
var Plugin = source.Plugin{
	Kind: "hermes", Needs: []string{"url", "provider"}, Knows: []string{"key"}, Feed: checkFeed, Open: open,
}

func checkFeed(feed string) error {
	if id, err := chain.ParseHash(feed); err != nil || id.IsZero() {
		return errors.New("is not a feed id of 32 bytes, 0x and 64 digits")
	}
	return nil
}

// hermes reads Pyth's Hermes: /v2/updates/price/latest once, then the server-sent events of /v2/updates/price/stream,
// or the former again and again where there is no stream. Min and max are price minus and plus its confidence, time is
// that of publication. Data is the ABI encoding of the bytes[] that proves all prices of one answer; each of its
// reports has the whole of it.
type hermes struct {
	client   *source.Client
	interval time.Duration
	provider chain.Address
	feeds    map[chain.Hash][]source.Token
	query    url.Values
}

func open(t source.Table, env source.Env) price.Source {
	feeds, ids := t.ByFeed()
	h := &hermes{
		client: env.Client, interval: t.Interval, provider: t.Provider, feeds: feeds,
		// a feed that was removed is left out of the answers, which it would make an error otherwise
		query: url.Values{"encoding": {"hex"}, "parsed": {"true"}, "ignore_invalid_price_ids": {"true"}},
	}
	for _, id := range ids {
		h.query.Add("ids[]", id.Hex())
	}
	if t.Key.IsSet() {
		env.Client.Sign = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+t.Key.Reveal()) }
	}
	return h
}

// Run implements price.Source.
func (h *hermes) Run(ctx context.Context, take price.Take) error {
	err := h.latest(ctx, take)
	if err == nil {
		err = h.client.Listen(ctx, "", h.query,
			func(ev source.Event) error { return h.give(take, []byte(ev.Data)) },
			"v2", "updates", "price", "stream")
		if source.IsNotFound(err) {
			err = source.Poll(ctx, h.interval, func(ctx context.Context) error { return h.latest(ctx, take) })
		}
	}
	return h.client.Wrap(err)
}

func (h *hermes) latest(ctx context.Context, take price.Take) error {
	raw, err := h.client.Get(ctx, h.query, "v2", "updates", "price", "latest")
	if err != nil {
		return err
	}
	return h.give(take, raw)
}

func (h *hermes) give(take price.Take, raw []byte) error {
	reports, unreadable, err := decode(raw, h.provider, h.feeds)
	if err == nil {
		take(reports, unreadable)
	}
	return err
}

// hermesUpdate is an answer and the data of an event.
type hermesUpdate struct {
	Binary struct {
		Encoding string   `json:"encoding"`
		Data     []string `json:"data"`
	} `json:"binary"`
	Parsed []hermesPrice `json:"parsed"`
}

// hermesPrice is a price of 10^expo USD per whole token. It may be negative, and the confidence may exceed it.
type hermesPrice struct {
	ID    string `json:"id"`
	Price struct {
		Price       string `json:"price"`
		Conf        string `json:"conf"`
		Expo        int32  `json:"expo"`
		PublishTime int64  `json:"publish_time"`
	} `json:"price"`
}

func decode(raw []byte, provider chain.Address, feeds map[chain.Hash][]source.Token) (reports []price.Report,
	unreadable []error, err error) {
	var update hermesUpdate
	if err := gojson.Unmarshal(raw, &update); err != nil {
		return nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	data, err := update.data()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the answer: binary: %w", err)
	}
	for _, p := range update.Parsed {
		some, err := p.reports(feeds)
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("price of feed %q: %w", p.ID, err))
			continue
		}
		for _, r := range some {
			r.Provider, r.Data = provider, data
			reports = append(reports, r)
		}
	}
	return reports, unreadable, nil
}

func (u hermesUpdate) data() ([]byte, error) {
	updates := make([][]byte, len(u.Binary.Data))
	for i, text := range u.Binary.Data {
		var err error
		switch u.Binary.Encoding {
		case "hex":
			updates[i], err = source.DecodeHex(text)
		case "base64":
			updates[i], err = base64.StdEncoding.DecodeString(text)
		default:
			err = fmt.Errorf("encoding %q is neither hex nor base64", u.Binary.Encoding)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(updates) == 0 {
		return nil, errors.New("there is none")
	}
	return encodeBytesList(updates), nil
}

// reports are those of all tokens of the feed.
func (p hermesPrice) reports(feeds map[chain.Hash][]source.Token) (reports []price.Report, err error) {
	id, err := chain.ParseHash("0x" + strings.TrimPrefix(p.ID, "0x"))
	if err != nil {
		return nil, err
	}
	tokens := feeds[id]
	if len(tokens) == 0 {
		return nil, errors.New("it was not asked for")
	}
	middle, err := perp.ParseUint(p.Price.Price)
	if err != nil {
		return nil, fmt.Errorf("price: %w", err)
	}
	conf, err := perp.ParseUint(p.Price.Conf)
	if err != nil {
		return nil, fmt.Errorf("conf: %w", err)
	}
	if p.Price.PublishTime <= 0 || p.Price.PublishTime > math.MaxInt64/1000 {
		return nil, fmt.Errorf("publish_time: %d is no time", p.Price.PublishTime)
	}
	var low, high perp.Uint
	if err := perp.Checked(func() { low, high = middle.Sub(conf), middle.Add(conf) }); err != nil {
		return nil, fmt.Errorf("a price of %s with a confidence of %s: %w", middle, conf, err)
	}
	for _, token := range tokens {
		r := price.Report{Token: token.Address, TimeMs: uint64(p.Price.PublishTime) * 1000}
		if r.Min, r.Max, err = price.PerUnit(low, high, int(p.Price.Expo), token.Decimals); err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// encodeBytesList is the ABI encoding of one bytes[].
func encodeBytesList(list [][]byte) []byte {
	number := func(n int) []byte { return binary.BigEndian.AppendUint64(make([]byte, source.Word-8), uint64(n)) }
	out := append(number(source.Word), number(len(list))...)
	at := len(list) * source.Word
	for _, b := range list {
		out = append(out, number(at)...)
		at += source.Word + (len(b)+source.Word-1)/source.Word*source.Word
	}
	for _, b := range list {
		out = append(append(out, number(len(b))...), b...)
		out = append(out, make([]byte, (source.Word-len(b)%source.Word)%source.Word)...)
	}
	return out
}
