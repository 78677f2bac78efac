package price

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// HTTP is a Source that serves signed reports as a JSON list at <url>/v1/reports: token, provider, data, minPrice, maxPrice, timestampMs, with prices as
// decimal strings and data in hexadecimal.
type HTTP struct {
	cfg    Config
	client *http.Client
}

// NewHTTP makes the source of a configuration that has a URL.
func NewHTTP(cfg Config) *HTTP {
	return &HTTP{cfg: cfg, client: &http.Client{Timeout: cfg.RequestTimeout, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}}}
}

// Close drops the idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Latest asks for the newest report of every token. Its reports are not checked yet.
func (h *HTTP) Latest(ctx context.Context) ([]Report, error) {
	reports, err := h.latest(ctx)
	if err != nil {
		if wrapped, is := errors.AsType[*url.Error](err); is { // its text repeats the whole address
			err = wrapped.Err
		}
		return nil, fmt.Errorf("asking %s for price reports: %w", h.cfg.URL, err)
	}
	return reports, nil
}

func (h *HTTP) latest(ctx context.Context) ([]Report, error) {
	address, err := url.Parse(h.cfg.URL.Reveal())
	if err != nil {
		return nil, errors.New("not an address")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("v1", "reports").String(), nil)
	if err != nil {
		return nil, errors.New("not an address")
	}
	answer, err := h.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // nothing depends on how a read connection closes
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %s", answer.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return decodeReports(raw, h.cfg.URL.String())
}

// reportReply is a report as the service shows it.
type reportReply struct {
	Token       chain.Address `json:"token"`
	Provider    chain.Address `json:"provider"`
	Data        string        `json:"data"`
	MinPrice    perp.Uint     `json:"minPrice"`
	MaxPrice    perp.Uint     `json:"maxPrice"`
	TimestampMs uint64        `json:"timestampMs"`
}

func decodeReports(raw []byte, source string) ([]Report, error) {
	var replies []reportReply
	if err := gojson.Unmarshal(raw, &replies); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	reports := make([]Report, len(replies))
	for i, r := range replies {
		data, err := hex.DecodeString(strings.TrimPrefix(r.Data, "0x"))
		if err != nil {
			return nil, fmt.Errorf("reading the answer: data of %s: %w", r.Token, err)
		}
		reports[i] = Report{
			Token: r.Token, Provider: r.Provider, Data: data, Min: r.MinPrice, Max: r.MaxPrice, TimeMs: r.TimestampMs, Source: source,
		}
	}
	return reports, nil
}
