package evm

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Blocks returns the headers of the blocks between from and to, both included, in ascending order, on the chain of this
// moment. Every hash has been recomputed and every header names the one before as its parent, so that the last hash
// vouches for all of them. They are read in batches, of a size that each endpoint is known to take, without
// transactions. NotFound(err) where the chain is shorter.
func (r Reader) Blocks(ctx context.Context, from, to uint64) ([]Header, error) {
	var all []Header
	for at := from; at <= to; {
		batch, err := eachInTurn(ctx, r, Everything, func(e *endpoint) ([]Header, error) {
			most := int(min(to-at, math.MaxInt32-1)) + 1
			batch, err := e.shrinking(ctx, most, func(n int) ([]Header, error) {
				return e.batch(ctx, at, at+uint64(n)-1)
			})
			if err == nil && len(all) > 0 && !batch[0].Follows(all[len(all)-1].BlockRef) {
				return nil, &forkError{batch[0], all[len(all)-1]}
			}
			return batch, err
		})
		if err != nil {
			return nil, fmt.Errorf("asking for the headers of blocks %d to %d: %w", at, to, err)
		}
		all = append(all, batch...)
		last := batch[len(batch)-1].Number
		if last == to {
			break
		}
		at = last + 1
	}
	return all, nil
}

// forkError reports that two endpoints, or one after a while, name blocks of different branches.
type forkError struct{ block, before Header }

func (e *forkError) Error() string {
	return fmt.Sprintf("block %d %s does not follow block %d %s: the chain changed meanwhile, or endpoints disagree",
		e.block.Number, e.block.Hash, e.before.Number, e.before.Hash)
}

// shrinking asks the endpoint for the first of so many headers, for fewer each time it refuses in a way that may be for
// their number.
func (e *endpoint) shrinking(ctx context.Context, most int, ask func(n int) ([]Header, error)) ([]Header, error) {
	for {
		n := min(most, e.batchSize())
		batch, err := ask(n)
		if err == nil {
			e.batchWorked(n)
			return batch, nil
		}
		if n == 1 || !mayBeTooLong(err) || ctx.Err() != nil {
			return nil, err
		}
		e.batchRefused(n)
	}
}

// mayBeTooLong reports whether a shorter batch could be answered where this one was not: gateways refuse long ones with
// whatever error, or a page.
func mayBeTooLong(err error) bool {
	failed, is := errors.AsType[*callError](err)
	return is && failed.class != failedLie && failed.class != failedNotFound && failed.class != failedWrongChain &&
		failed.class != failedThrottled
}

// batch asks for a few headers at once; for a single one without a batch, as some gateways do not know any.
func (e *endpoint) batch(ctx context.Context, from, last uint64) ([]Header, error) {
	if from == last {
		h, err := put(ctx, e, headerAt(from))
		return []Header{h}, err
	}
	calls := make([]batchCall, last-from+1)
	for i := range calls {
		calls[i] = batchCall{method: methodBlockAt, args: []any{hexNumber(from + uint64(i)), false}}
	}
	if err := e.askBatch(ctx, labelBatch, calls); err != nil {
		return nil, err
	}
	headers, err := readHeaders(calls, from)
	if err != nil {
		return nil, e.failed(ctx, labelBatch, err, 0)
	}
	return headers, nil
}

// readHeaders reads headers that were asked for by their numbers, from a number on. A break between two is no lie: the
// chain may have changed while the node wrote its answer.
func readHeaders(calls []batchCall, from uint64) ([]Header, error) {
	headers := make([]Header, len(calls))
	for i, call := range calls {
		h, err := headerAt(from + uint64(i)).read(call.result)
		if err != nil {
			return nil, unfit(err, call.method, call.args, call.result)
		}
		if headers[i] = h; i > 0 && !h.Follows(headers[i-1].BlockRef) {
			return nil, &forkError{h, headers[i-1]}
		}
	}
	return headers, nil
}

func (e *endpoint) batchSize() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.batches
}

// headersBatch is how many headers are asked for in one batch at most; less is learnt for each endpoint.
const headersBatch = 100

// batchWorked lets batches grow by a tenth of that after each full one.
func (e *endpoint) batchWorked(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n >= e.batches {
		e.batches = min(e.batches+headersBatch/10, headersBatch)
	}
}

func (e *endpoint) batchRefused(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batches = max(min(e.batches, n/2), 1)
}
