package evm

import (
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
)

// Code returns a contract's code after a block, named by its hash; it is empty where there is no contract. Nodes that
// keep no old states refuse old blocks.
func (r Reader) Code(ctx context.Context, contract chain.Address, block chain.Hash) ([]byte, error) {
	q := scalar[hexBytes](methodCode, contract, blockArg{block})
	q.first = r.pool.memory.server(block)
	code, _, err := ask(ctx, r, q)
	if err != nil {
		return nil, fmt.Errorf("asking for the code of %s at block %s: %w", contract, block, err)
	}
	return code, nil
}

// Settled is the state after a final block, as two hosts have it; see [Client.Finalized]. What it returns is
// Undecided(err) while they do not agree.
type Settled struct {
	client *Client
	block  chain.Hash
}

// Settled asks nothing yet.
func (c *Client) Settled(block chain.Hash) Settled { return Settled{c, block} }

// Ask executes a message. A revert is no error: output is its data then, and answered is false, as it is where there is
// no contract.
func (s Settled) Ask(ctx context.Context, to chain.Address, data []byte) (output []byte, answered bool, err error) {
	// The first byte says which of the two it is: only what is comparable can be agreed on.
	const returns, reverts = "+", "-"
	said, err := same(ctx, s.client, ForCalls, func(ctx context.Context, one Reader) (string, error) {
		output, err := one.Call(ctx, to, data, s.block)
		if reason, reverted := RevertData(err); reverted {
			return reverts + string(reason), nil
		}
		return returns + string(output), err
	})
	if err != nil {
		return nil, false, fmt.Errorf("asking two hosts for a call: %w", err)
	}
	output = []byte(said[1:])
	return output, said[:1] == returns && len(output) > 0, nil
}

// Code is [Reader.Code].
func (s Settled) Code(ctx context.Context, contract chain.Address) ([]byte, error) {
	code, err := same(ctx, s.client, ForCalls, func(ctx context.Context, one Reader) (string, error) {
		code, err := one.Code(ctx, contract, s.block)
		return string(code), err
	})
	if err != nil {
		return nil, fmt.Errorf("asking two hosts for a contract's code: %w", err)
	}
	return []byte(code), nil
}
