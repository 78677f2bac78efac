package evm

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
)

// SendRaw gives a signed transaction to every endpoint and returns nil as soon as one has it in its pool; the others go on being asked. Otherwise
// the error holds the answer of each, for SendClass, Ambiguous and NotSent.
func (c *Client) SendRaw(ctx context.Context, raw []byte) error {
	type answer struct {
		from int
		err  error
	}
	answers := make(chan answer, len(c.endpoints))
	for i, e := range c.endpoints {
		c.background.Go(func() { answers <- answer{i, c.sendTo(ctx, e, raw)} })
	}
	refused := make([]error, len(c.endpoints))
	for range c.endpoints {
		select {
		case a := <-answers:
			if SendClass(a.err) == Accepted {
				return nil
			}
			refused[a.from] = a.err
		case <-ctx.Done():
			return fmt.Errorf("sending a transaction: nobody waited for the answers: %w", context.Cause(ctx))
		}
	}
	return &refusals{refused}
}

// sendTo outlives the caller's context, so that the slower endpoints get the transaction too.
func (c *Client) sendTo(ctx context.Context, e *endpoint, raw []byte) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	var hash chain.Hash
	if err := e.ask(ctx, &hash, "eth_sendRawTransaction", hexBytes(raw)); err != nil {
		return err
	}
	if want := chain.Keccak256(raw); hash != want {
		return e.failed(ctx, "eth_sendRawTransaction", malformed("the node answered with hash %s for transaction %s", hash, want))
	}
	return nil
}

// refusals are the answers of all endpoints to a transaction that none accepted.
type refusals struct{ answers []error }

func (r *refusals) Error() string {
	return "sending a transaction: " + errors.Join(r.answers...).Error()
}

func (r *refusals) Unwrap() []error { return r.answers }
