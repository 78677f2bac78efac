package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
)

// Reader reads the chain through the endpoints of a client, or through some of them; see Client.Excluding. It is safe
// for concurrent use.
type Reader struct {
	pool    *pool
	without []Source
}

// Client is the way to one chain. It is safe for concurrent use; one per process is enough.
type Client struct{ Reader }

// Dial makes a client of the chain with that id and asks every endpoint once which chain it belongs to. A wrong chain
// is an error (WrongChain). Endpoints that do not answer are no error: they are probed until they do, and Health says
// so meanwhile.
func Dial(ctx context.Context, chainID uint64, cfg Config, log zerolog.Logger, metrics *Metrics) (*Client, error) {
	return dial(ctx, chainID, cfg, log, metrics, transport.HTTP(cfg.RequestTimeout))
}

func dial(ctx context.Context, chainID uint64, cfg Config, log zerolog.Logger, metrics *Metrics,
	transport *http.Transport) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &pool{cfg: cfg, chainID: chainID, log: log, metrics: metrics, transport: transport}
	var err error
	if p.forks, err = forksOf(chainID, cfg.Forks); err != nil {
		return nil, err
	}
	p.life, p.closing = context.WithCancel(context.WithoutCancel(ctx))
	p.disputes = &disputes{kept: make(chan Dispute, openedDisputes)}
	c := &Client{Reader{pool: p}}
	names := map[string]int{}
	shared := &served{alone: len(cfg.URLs) == 1, last: map[Purpose]map[Source]time.Time{}}
	endpoint := func(u secret.URL, host string, h header, private bool) *endpoint {
		name := u.String()
		if names[name]++; names[name] > 1 {
			name = fmt.Sprintf("%s #%d", name, names[name])
		}
		e := newEndpoint(u, Source(name), host, h, private, chainID, cfg, transport, log, metrics)
		e.served, e.disputes = shared, p.disputes
		return e
	}
	for i, host := range hostsOf(cfg.URLs) {
		p.public = append(p.public, endpoint(cfg.URLs[i], host, headerOf(cfg.Headers, i), false))
	}
	for i, host := range hostsOf(cfg.PrivateURLs) {
		e := endpoint(cfg.PrivateURLs[i], host, headerOf(cfg.PrivateHeaders, i), true)
		e.bundles = len(cfg.PrivateKinds) > 0 && cfg.PrivateKinds[i] == kindBundle
		p.private = append(p.private, e)
	}
	if err = p.introduce(ctx); err != nil {
		c.Close()
		return nil, err
	}
	if alone := c.OneWord(); alone != "" {
		log.Warn().Msg("evm: " + alone)
	}
	p.background.Go(p.watch)
	return c, nil
}

// introduce connects to all endpoints at once and returns the error of one that belongs to another chain.
func (p *pool) introduce(ctx context.Context) error {
	all := p.all()
	for i, err := range p.greet(ctx, all) {
		switch {
		case WrongChain(err):
			return err
		case err != nil:
			all[i].log.Warn().Err(err).Msg("evm: endpoint does not answer, going on without it until it does")
		}
	}
	return nil
}

// greet makes endpoints show their chain, all at once, and those to read from their heads, which are compared when all
// are in.
func (p *pool) greet(ctx context.Context, all []*endpoint) []error {
	heads, failures := make([]chain.BlockRef, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, e := range all {
		wg.Go(func() {
			if e.private {
				if _, err := put(ctx, e, scalar[hexNumber](methodChainID)); !Refused(err) {
					failures[i] = err
				}
				return
			}
			heads[i], failures[i] = put(ctx, e, tagged("latest"))
		})
	}
	wg.Wait()
	named := func(visit func(*endpoint, chain.BlockRef)) {
		for i, e := range all {
			if !e.private && failures[i] == nil {
				visit(e, heads[i])
			}
		}
	}
	named((*endpoint).names)
	named(p.notes)
	named(func(e *endpoint, head chain.BlockRef) { p.sawHead(e, head) })
	return failures
}

// all are the endpoints to read from and those to send to only.
func (p *pool) all() []*endpoint { return slices.Concat(p.public, p.private) }

// Close ends what runs in the background and drops the connections.
func (c *Client) Close() {
	c.pool.closing()
	c.pool.background.Wait()
	for _, e := range c.pool.all() {
		e.close()
	}
	c.pool.transport.CloseIdleConnections()
}

// Health is nil if at least one endpoint to read from answered when it was last asked; otherwise it returns what is
// wrong with each. It is what readiness should ask.
func (c *Client) Health() error {
	var problems []error
	for _, e := range c.pool.public {
		err := e.health()
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// EndpointStatus is the state of an endpoint, for a status page. It holds no secret.
type EndpointStatus struct {
	Source  Source
	Host    string // two endpoints of one host have one word together
	Private bool   // for sending only
	// Excluded is empty where the endpoint is used for all that is asked.
	Excluded []Exclusion
	// Score is the time in milliseconds after which a good answer about the newest block is to be expected; reads go to
	// the lowest. Milliseconds an answer takes and the share of requests that fail are parts of it.
	Score, LatencyMs, FailureShare float64
	Failures                       int            // in a row
	Head                           chain.BlockRef // the newest block it named
	Behind                         time.Duration  // chain time from that to the best head then
	RequestsPerSecond              float64        // what it has taught about its limit; 0 if nothing
	LastError                      error          // how the last request ended
	Software                       string         // in its own words; empty where no fork has made anybody ask
}

// MarshalJSON implements json.Marshaler: the error, which has no JSON form, as its text.
func (s EndpointStatus) MarshalJSON() ([]byte, error) {
	type plain EndpointStatus
	shown := struct {
		plain

		LastError string `json:",omitempty"`
	}{plain: plain(s)}
	if s.LastError != nil {
		shown.LastError = s.LastError.Error()
	}
	return json.Marshal(shown)
}

// Endpoints returns the status of each endpoint, in the order of the configuration, the private ones last.
func (c *Client) Endpoints() []EndpointStatus {
	var list []EndpointStatus
	for _, e := range c.pool.all() {
		list = append(list, e.status())
	}
	return list
}

// Page shows the status of each endpoint as JSON, without secrets.
func (c *Client) Page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.Endpoints()) // The client may have gone; nothing is lost with it.
	})
}

func (e *endpoint) status() EndpointStatus {
	s := EndpointStatus{Source: e.name, Host: e.host, Private: e.private,
		RequestsPerSecond: e.bucket.learnt(time.Now())}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Excluded, s.LastError, s.Software = e.exclusions.sorted(), e.last, e.software
	s.Score, s.LatencyMs, s.FailureShare = e.vitals.score(e.cfg.RequestTimeout), e.vitals.latency, e.vitals.failures
	s.Failures, s.Head, s.Behind = e.vitals.streak, e.vitals.head, e.vitals.behind
	return s
}
