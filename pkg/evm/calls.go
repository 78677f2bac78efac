package evm

import (
	"context"
	"encoding/json"
	"fmt"

	"perpkeeper/pkg/chain"
)

// CallResult is the output of one of several messages, or why there is none.
type CallResult struct {
	Out []byte
	Err error
}

// Calls executes messages to one contract on the state after a block, named by its hash, and returns their outputs in
// the same order. They are sent in batches of a size that each endpoint is known to take, one after the other. A
// message that an endpoint answers with an error while it answers others is asked again alone, of whoever answers it.
// The error is for what keeps any of them from being answered; NoState(err) where no node has that state.
func (r Reader) Calls(ctx context.Context, to chain.Address, data [][]byte, block chain.Hash) ([]CallResult, error) {
	all := make([]CallResult, 0, len(data))
	for len(all) < len(data) {
		rest := data[len(all):]
		answers, err := eachInTurn(ctx, r, Everything,
			func(e *endpoint) ([]CallResult, error) {
				return shrinking(ctx, e, len(rest), mayBeTooMany,
					func(n int) ([]CallResult, error) { return e.callBatch(ctx, to, rest[:n], block) })
			})
		if err != nil {
			return nil, fmt.Errorf("calling %s %d times at block %s: %w", to, len(data), block, err)
		}
		for i := range answers {
			if answers[i].Err != nil {
				answers[i].Out, answers[i].Err = r.Call(ctx, to, rest[i], block)
			}
		}
		all = append(all, answers...)
	}
	return all, nil
}

// callBatch is one request. It fails if none of the messages was answered.
func (e *endpoint) callBatch(ctx context.Context, to chain.Address, data [][]byte, block chain.Hash) ([]CallResult,
	error) {
	if len(data) == 1 {
		out, err := put(ctx, e, scalar[hexBytes](methodCall, callArg{To: to, Data: data[0]}, blockArg{block}))
		if _, reverted := RevertData(err); err != nil && !reverted {
			return nil, err
		}
		return []CallResult{{out, err}}, nil
	}
	calls := make([]batchCall, len(data))
	for i := range calls {
		calls[i] = batchCall{method: methodCall, args: []any{callArg{To: to, Data: data[i]}, blockArg{block}}}
	}
	if err := e.askBatch(ctx, labelCalls, calls, anyAnswered); err != nil {
		return nil, err
	}
	answers := make([]CallResult, len(data))
	for i, call := range calls {
		answers[i] = readCall(call.result, call.err)
	}
	return answers, nil
}

func readCall(raw json.RawMessage, err error) CallResult {
	if err != nil {
		return CallResult{Err: err}
	}
	var out hexBytes
	if err := json.Unmarshal(raw, &out); err != nil {
		return CallResult{Err: malformed("reading the answer: %v", err)}
	}
	return CallResult{Out: out}
}
