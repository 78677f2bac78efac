// Package streams reads Chainlink Data Streams.
package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gojson "github.com/goccy/go-json"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/setting/secret"
)

// Plugin is this kind of service: reports are pushed over the WebSocket at stream_url, or asked for where there is
// none.
var Plugin = source.Plugin{
	Kind: "streams", Needs: []string{"url", "key", "secret", "provider"}, Knows: []string{"stream_url"},
	Feed: checkFeed, Open: open,
	Adjusts: source.Adjustment{Word: "DATA_STREAM_SPREAD_REDUCTION_FACTOR", Take: narrow},
}

// narrow is what the exchange's provider makes of bid and ask (ChainlinkDataStreamProvider): it takes them towards each
// other, by a factor of 30 decimals. It takes no report at a factor above one, and there is nothing to narrow then.
func narrow(p perp.Price, factor chain.Uint) perp.Price {
	switch {
	case perp.One.Less(factor):
		return p
	case factor == perp.One:
		middle := p.Max.Add(p.Min).Div(chain.U64(2))
		return perp.Price{Min: middle, Max: middle}
	}
	by := p.Max.Sub(p.Min).Div(chain.U64(2)).MulDiv(factor, perp.One)
	return perp.Price{Min: p.Min.Add(by), Max: p.Max.Sub(by)}
}

func checkFeed(feed string) error {
	id, err := chain.ParseHash(feed)
	switch {
	case err != nil || id.IsZero():
		return errors.New("is not a feed id of 32 bytes, 0x and 64 digits")
	case feedVersion(id) != 3:
		return fmt.Errorf("is a feed of report schema %d (only schema 3, ids that begin with 0x0003, is read)",
			feedVersion(id))
	}
	return nil
}

// streams reads Chainlink Data Streams: reports pushed over a WebSocket, or the latest of every feed asked for again
// and again. Min and max are the report's bid and ask, time is that of its observations, data is the whole signed
// report.
//
// After a lost connection it asks for what was missed, as far back as reports are not stale, before it reads what is
// pushed, second by second.
type streams struct {
	client   *source.Client
	socket   secret.URL
	auth     credentials
	interval time.Duration
	timeout  time.Duration // of the handshake
	maxAge   time.Duration
	provider chain.Address
	feeds    map[chain.Hash][]source.Token
	ids      []chain.Hash // of the feeds, in the order of the configuration

	newest map[chain.Hash]uint32 // second of the newest report of each feed
}

const feedDecimals = 18

func open(t source.Table, env source.Env) price.Source {
	s := &streams{
		client: env.Client, socket: t.StreamURL, auth: credentials{t.Key, t.Secret}, interval: t.Interval,
		timeout: env.Timeout,
		maxAge:  t.MaxAge, provider: t.Provider,
		newest: map[chain.Hash]uint32{},
	}
	s.feeds, s.ids = t.ByFeed()
	env.Client.Sign = func(r *http.Request) { s.auth.sign(r.Header, r.Method, r.URL.RequestURI(), time.Now()) }
	return s
}

// Run implements price.Source.
func (s *streams) Run(ctx context.Context, take price.Take) error {
	if s.socket.IsSet() {
		return s.subscribe(ctx, take)
	}
	return s.client.Wrap(source.Poll(ctx, s.interval,
		func(ctx context.Context) error { return s.latest(ctx, take, s.ids) }))
}

// latest asks for the newest report of each feed, several at a time. A feed that the service does not answer for, as
// one that was retired, silences its own token and no other: only where none is answered for is it the service.
func (s *streams) latest(ctx context.Context, take price.Take, ids []chain.Hash) error {
	const atOnce = 8
	replies, failures := make([]streamsReply, len(ids)), make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, id := range ids {
		group.Go(func() error {
			raw, err := s.client.Get(ctx, url.Values{"feedID": {id.Hex()}}, "api", "v1", "reports", "latest")
			if err == nil {
				replies[i], err = decodeStreamsReport(raw)
			}
			failures[i] = err
			return nil
		})
	}
	_ = group.Wait() // none of them returns an error
	var answered []streamsReply
	var unreadable []error
	for i, err := range failures {
		if err == nil {
			answered = append(answered, replies[i])
			continue
		}
		unreadable = append(unreadable, fmt.Errorf("newest report of feed %s: %w", ids[i], s.client.Wrap(err)))
	}
	if len(answered) == 0 && len(ids) > 0 {
		return failures[0]
	}
	s.give(take, answered, unreadable...)
	return nil
}

// catchUp asks for what came since the newest reports known. Of a feed whose newest report is stale, or that never gave
// one, it asks for the newest.
func (s *streams) catchUp(ctx context.Context, take price.Take, now time.Time) error {
	var known, unknown []chain.Hash
	oldest := uint32(now.Unix())
	for _, id := range s.ids {
		if now.Sub(time.Unix(int64(s.newest[id]), 0)) > s.maxAge {
			unknown = append(unknown, id)
			continue
		}
		known, oldest = append(known, id), min(oldest, s.newest[id])
	}
	if err := s.latest(ctx, take, unknown); err != nil {
		if len(known) == 0 {
			return err
		}
		take(nil, []error{s.client.Wrap(err)}) // if the service is what fails, the next question shows it
	}
	if len(known) == 0 {
		return nil
	}
	return s.bulk(ctx, take, known, oldest+1, uint32(now.Unix()))
}

// bulk asks for the reports of all feeds, second by second.
func (s *streams) bulk(ctx context.Context, take price.Take, ids []chain.Hash, from, to uint32) error {
	for second := from; second <= to; second++ {
		query := url.Values{"feedIDs": {commaSeparated(ids)}, "timestamp": {strconv.FormatUint(uint64(second), 10)}}
		raw, err := s.client.Get(ctx, query, "api", "v1", "reports", "bulk")
		if source.IsNotFound(err) {
			continue // there are no reports of that second
		}
		if err != nil {
			return err
		}
		some, err := decodeStreamsReports(raw)
		if err != nil {
			return err
		}
		s.give(take, some)
	}
	return nil
}

func commaSeparated(ids []chain.Hash) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.Hex()
	}
	return strings.Join(texts, ",")
}

// give hands on reports, and what could not be read beside them, and remembers how far they go.
func (s *streams) give(take price.Take, replies []streamsReply, unreadable ...error) {
	var reports []price.Report
	for _, reply := range replies {
		tokens := s.feeds[reply.FeedID]
		if len(tokens) == 0 {
			unreadable = append(unreadable, fmt.Errorf("a report of feed %s, which was not asked for", reply.FeedID))
		}
		for _, token := range tokens {
			r, observed, err := reply.report(token)
			if err != nil {
				unreadable = append(unreadable, fmt.Errorf("report of feed %s: %w", reply.FeedID, err))
				continue
			}
			s.newest[reply.FeedID] = max(s.newest[reply.FeedID], observed)
			r.Provider = s.provider
			reports = append(reports, r)
		}
	}
	take(reports, unreadable)
}

// streamsReply is a report as the service shows it.
type streamsReply struct {
	FeedID     chain.Hash `json:"feedID"`
	FullReport string     `json:"fullReport"`
}

// report converts a report of the feed of a token. The second is that of its observations.
func (s streamsReply) report(token source.Token) (r price.Report, observed uint32, err error) {
	full, err := source.DecodeHex(s.FullReport)
	if err != nil {
		return r, 0, fmt.Errorf("fullReport: %w", err)
	}
	v3, err := decodeFullReport(full)
	if err != nil {
		return r, 0, err
	}
	if v3.feed != s.FeedID {
		return r, 0, fmt.Errorf("it is one of feed %s", v3.feed)
	}
	var low, high chain.Uint
	if low, high, err = price.PerUnit(v3.bid, v3.ask, -int(cmp.Or(token.FeedDecimals, feedDecimals)),
		token.Decimals); err != nil {
		return r, 0, err
	}
	return price.Report{Token: token.Address, Data: full, Min: low, Max: high, TimeMs: uint64(v3.observed) * 1000},
		v3.observed, nil
}

// decodeStreamsReport reads {"report": …}, the answer for one feed and a message of the WebSocket.
func decodeStreamsReport(raw []byte) (streamsReply, error) {
	var answer struct {
		Report *streamsReply `json:"report"`
	}
	if err := gojson.Unmarshal(raw, &answer); err != nil {
		return streamsReply{}, fmt.Errorf("reading the answer: %w", err)
	}
	if answer.Report == nil {
		return streamsReply{}, errors.New("reading the answer: it has no report")
	}
	return *answer.Report, nil
}

// decodeStreamsReports reads {"reports": […]}.
func decodeStreamsReports(raw []byte) ([]streamsReply, error) {
	var answer struct {
		Reports []streamsReply `json:"reports"`
	}
	if err := gojson.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return answer.Reports, nil
}
