package evm

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Client is the way to one chain. It is safe for concurrent use; one per process is enough.
type Client struct {
	cfg       Config
	chainID   uint64
	log       zerolog.Logger
	metrics   *Metrics
	endpoints []*endpoint
	preferred atomic.Int32 // the endpoint that answered last
	transport *http.Transport

	closing    context.CancelFunc
	life       context.Context //nolint:containedctx // The client's own: what runs in the background ends with it.
	background sync.WaitGroup
}

// Dial makes a client of the chain with that id and asks every endpoint once which chain it belongs to. A wrong chain is an error (WrongChain).
// Endpoints that do not answer are no error: they are asked again by each call, and Health says so meanwhile.
func Dial(ctx context.Context, chainID uint64, cfg Config, log zerolog.Logger, metrics *Metrics) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, chainID: chainID, log: log, metrics: metrics, transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
	}}
	c.life, c.closing = context.WithCancel(context.WithoutCancel(ctx))
	for _, u := range cfg.URLs {
		c.endpoints = append(c.endpoints, newEndpoint(u, chainID, cfg, metrics, &http.Client{Transport: c.transport}))
	}
	if err := c.introduce(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// introduce connects to all endpoints at once and returns the error of one that belongs to another chain.
func (c *Client) introduce(ctx context.Context) error {
	failures := make([]error, len(c.endpoints))
	var wg sync.WaitGroup
	for i, e := range c.endpoints {
		wg.Go(func() {
			var number hexNumber
			failures[i] = e.ask(ctx, &number, "eth_blockNumber")
		})
	}
	wg.Wait()
	for i, err := range failures {
		switch {
		case WrongChain(err):
			return err
		case err != nil:
			c.log.Warn().Err(err).Stringer("endpoint", c.endpoints[i].url).Msg("evm: endpoint does not answer, going on without it until it does")
		}
	}
	return nil
}

// Close ends what runs in the background and drops the connections.
func (c *Client) Close() {
	c.closing()
	c.background.Wait()
	for _, e := range c.endpoints {
		e.close()
	}
	c.transport.CloseIdleConnections()
}

// ChainID is the id of the chain, which every endpoint in use has named.
func (c *Client) ChainID() uint64 { return c.chainID }

// Health is nil if at least one endpoint answered when it was last asked; otherwise it says what is wrong with each. It is what readiness
// should ask.
func (c *Client) Health() error {
	var problems []error
	for _, e := range c.endpoints {
		err := e.health()
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// ask sends a request to the endpoint that answered last, and to the others in turn while there is no answer. A node's own error is an answer.
func (c *Client) ask(ctx context.Context, result any, method string, args ...any) error {
	return c.askUntil(ctx, func() bool { return true }, result, method, args...)
}

// askUntil goes on also when an answer is not enough. Where none is, the last one stands.
func (c *Client) askUntil(ctx context.Context, enough func() bool, result any, method string, args ...any) error {
	first, answered := int(c.preferred.Load()), false
	var problems []error
	for i := range c.endpoints {
		at := (first + i) % len(c.endpoints)
		err := c.endpoints[at].ask(ctx, result, method, args...)
		switch {
		case noAnswer(err):
			problems = append(problems, err)
		case err != nil || enough():
			c.prefer(first, at, problems)
			return err
		default:
			answered = true
		}
	}
	if answered {
		return nil
	}
	return errors.Join(problems...)
}

// prefer makes an endpoint the first to be asked, because others gave no answer, or none that was enough.
func (c *Client) prefer(before, now int, problems []error) {
	if before == now || !c.preferred.CompareAndSwap(int32(before), int32(now)) {
		return
	}
	c.metrics.failovers.Inc()
	c.log.Warn().Errs("because", problems).Stringer("to", c.endpoints[now].url).Msg("evm: reading through another endpoint")
}
