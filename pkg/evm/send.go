package evm

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
)

// SendRaw gives a signed transaction to every public endpoint and returns nil as soon as one has it in its pool; the
// others go on being asked. Otherwise the error holds the answer of each, for SendClass.
func (c *Client) SendRaw(ctx context.Context, raw []byte) error {
	return c.pool.send(ctx, c.pool.public, raw, 0)
}

// SendPrivate gives a signed transaction to every private endpoint and to no other, so that it is not seen before it is
// mined; everything else is as with SendRaw. A relay's acceptance is no promise to mine it, and what a relay does with
// it is not in our hands. Those that take bundles get it as a bundle of one, not to be mined after untilMs (Unix ms, on
// the chain's clock; 0 = as long as the builder keeps it). An error, and nothing sent, where none is configured.
func (c *Client) SendPrivate(ctx context.Context, raw []byte, untilMs uint64) error {
	if len(c.pool.private) == 0 {
		return errors.New("sending a transaction in private: no private endpoint is configured " +
			"(name one in chain.private_urls)")
	}
	return c.pool.send(ctx, c.pool.private, raw, untilMs)
}

func (p *pool) send(ctx context.Context, to []*endpoint, raw []byte, untilMs uint64) error {
	type answer struct {
		from int
		err  error
	}
	answers := make(chan answer, len(to))
	for i, e := range to {
		p.background.Go(func() { answers <- answer{i, p.sendTo(ctx, e, raw, untilMs)} })
	}
	refused := make([]hostAnswer, len(to))
	for range to {
		select {
		case a := <-answers:
			if SendClass(a.err) == Accepted {
				return nil
			}
			refused[a.from] = hostAnswer{to[a.from].host, a.err}
		case <-ctx.Done():
			return fmt.Errorf("sending a transaction: nobody waited for the answers: %w", context.Cause(ctx))
		}
	}
	return &refusals{refused}
}

// sendTo outlives the caller's context, so that the slower endpoints get the transaction too.
func (p *pool) sendTo(ctx context.Context, e *endpoint, raw []byte, untilMs uint64) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	if e.bundles {
		return e.sendBundle(ctx, raw, untilMs)
	}
	sent := scalar[chain.Hash](methodSend, hexBytes(raw))
	hash, err := put(ctx, e, sent)
	if want := chain.Keccak256(raw); err == nil && hash != want {
		return e.failed(ctx, methodSend, malformed("the node answered with hash %s for transaction %s", hash, want), 0)
	}
	return err
}

// refusals are the answers of all endpoints to a transaction that none accepted.
type refusals struct{ answers []hostAnswer }

// hostAnswer is what an endpoint at a host has answered.
type hostAnswer struct {
	host string
	err  error
}

func (r *refusals) Error() string {
	return "sending a transaction: " + errors.Join(r.Unwrap()...).Error()
}

func (r *refusals) Unwrap() []error {
	errs := make([]error, len(r.answers))
	for i, a := range r.answers {
		errs[i] = a.err
	}
	return errs
}
