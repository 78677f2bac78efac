package evm

import (
	"context"
	"encoding/json"
	"slices"

	"perpkeeper/pkg/chain"
)

// earlyReceipts are the receipts of a block that were asked for before the block was there. They are no more than a
// hope: where none came, or they are not proven, they are asked for again in the ordinary way, which knows whose fault
// that is.
type earlyReceipts struct {
	drop context.CancelFunc
	done chan struct{} // closed when there is an answer, or none will come
	raw  json.RawMessage
	from *endpoint
}

// askEarly asks for the receipts of a block, as long as ctx lasts, first of an endpoint unless that is nil.
func (r Reader) askEarly(ctx context.Context, hash chain.Hash, first *endpoint) *earlyReceipts {
	ctx, cancel := context.WithCancel(ctx)
	early := &earlyReceipts{drop: cancel, done: make(chan struct{})}
	go func() {
		defer cancel()
		defer close(early.done)
		raw, from, err := ask(ctx, r, question[json.RawMessage]{
			method: methodReceipts, args: []any{hash}, first: first,
			read: func(raw json.RawMessage) (json.RawMessage, error) { return raw, nil },
		})
		if err == nil {
			early.raw, early.from = raw, from
		}
	}()
	return early
}

// takeEarly returns the receipts that were asked for with the block, if they are proven.
func (r Reader) takeEarly(ctx context.Context, block Block) ([]Receipt, bool) {
	if block.early == nil {
		return nil, false
	}
	defer block.early.drop()
	select {
	case <-block.early.done:
	case <-ctx.Done():
		return nil, false
	}
	if block.early.raw == nil || r.leavesOut(block.early.from) {
		return nil, false
	}
	receipts, root, err := r.readReceipts(block.early.raw, block)
	if err != nil || root != block.ReceiptsRoot {
		return nil, false
	}
	return receipts, true
}

// leavesOut reports whether a reader asks an endpoint nothing.
func (r Reader) leavesOut(e *endpoint) bool { return slices.Contains(r.without, e.name) }
