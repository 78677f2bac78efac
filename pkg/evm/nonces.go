package evm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
)

// AccountAt is an account after a block.
type AccountAt struct {
	Account chain.Address
	Block   uint64
}

// OldNonces returns how many transactions accounts had sent after final blocks, in the order in which they were asked
// for. It is the word of one endpoint, or of several for parts of it. Nodes keep old states for a while only: one that
// lacks them comes last from then on, and NoState(err) where none has them.
func (r Reader) OldNonces(ctx context.Context, asked []AccountAt) ([]uint64, error) {
	nonces := make([]uint64, 0, len(asked))
	for len(nonces) < len(asked) {
		rest := asked[len(nonces):]
		some, err := eachInTurn(ctx, r, ForOldStates,
			func(e *endpoint) ([]uint64, error) {
				return shrinking(ctx, e, len(rest), mayBeTooMany,
					func(n int) ([]uint64, error) { return e.nonceBatch(ctx, rest[:n]) })
			})
		if err != nil {
			return nil, fmt.Errorf("asking for nonces at %s: %w", blocksOf(asked), err)
		}
		nonces = append(nonces, some...)
	}
	return nonces, nil
}

// SettledNonces is OldNonces as two hosts have it; see Finalized. Undecided(err) while they do not agree, and NoState
// as well where that is why.
func (c *Client) SettledNonces(ctx context.Context, asked []AccountAt) ([]uint64, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	text, err := same(ctx, c, ForOldStates, func(ctx context.Context, one Reader) (string, error) {
		nonces, err := one.OldNonces(ctx, asked)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(nonces) // lists cannot be compared
		return string(text), err
	})
	if err != nil {
		return nil, fmt.Errorf("asking two hosts for nonces at %s: %w", blocksOf(asked), err)
	}
	var nonces []uint64
	if err := json.Unmarshal([]byte(text), &nonces); err != nil {
		return nil, fmt.Errorf("reading nonces: %w", err)
	}
	return nonces, nil
}

// blocksOf names them for people.
func blocksOf(asked []AccountAt) string {
	byBlock := func(a, b AccountAt) int { return cmp.Compare(a.Block, b.Block) }
	return fmt.Sprintf("blocks %d to %d", slices.MinFunc(asked, byBlock).Block, slices.MaxFunc(asked, byBlock).Block)
}

// nonceBatch is one request; a single nonce is asked for without a batch, as some gateways do not know any.
func (e *endpoint) nonceBatch(ctx context.Context, asked []AccountAt) ([]uint64, error) {
	calls := make([]batchCall, len(asked))
	for i, a := range asked {
		calls[i] = batchCall{method: methodNonce, args: []any{a.Account, hexNumber(a.Block)}}
	}
	var err error
	if len(calls) == 1 {
		calls[0].result, err = e.askAs(ctx, labelNonces, methodNonce, calls[0].args...)
	} else {
		err = e.askBatch(ctx, labelNonces, calls, allAnswered)
	}
	if err != nil {
		return nil, err
	}
	nonces := make([]uint64, len(calls))
	for i, call := range calls {
		var nonce hexNumber
		if err := json.Unmarshal(call.result, &nonce); err != nil {
			return nil, e.failed(ctx, labelNonces, malformed("reading nonce %d: %v", i, err), 0)
		}
		nonces[i] = uint64(nonce)
	}
	return nonces, nil
}
