package scanner

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
)

// run publishes the chain until ctx ends, another scanner takes over, or something cannot be mended by trying again.
func (t *tenure) run(ctx context.Context, heads <-chan chain.BlockRef) error {
	group, ctx := errgroup.WithContext(ctx)
	from := t.streams[0].next
	group.Go(func() error { return t.watch(ctx, from) })
	group.Go(func() error { return t.follow(ctx, heads) })
	return group.Wait()
}

// follow publishes up to each head.
func (t *tenure) follow(ctx context.Context, heads <-chan chain.BlockRef) error {
	var head chain.BlockRef // none at first: the newest may have been announced before this tenure
	for {
		if err := t.reach(ctx, head); err != nil {
			return err
		}
		select {
		case head = <-heads:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// reach publishes up to a head, or up to the node's own where none is given or something went wrong. What the node does not answer is asked again
// without end.
func (t *tenure) reach(ctx context.Context, head chain.BlockRef) error {
	policy := retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second, OnRetry: func(attempt int, err error, _ time.Duration) {
		t.status.fail(err)
		if attempt == 1 {
			t.log.Warn().Err(err).Msg("cannot go on from the chain, trying again")
			return
		}
		t.log.Debug().Err(err).Int("attempt", attempt).Msg("still cannot go on from the chain")
	}}
	return retry.Do(ctx, policy, func(ctx context.Context) (err error) {
		target := head
		head = chain.BlockRef{}
		if target.Hash.IsZero() {
			if target, err = t.chain.Head(ctx); err != nil {
				return final(err)
			}
		}
		t.status.saw(target)
		if err := t.advance(ctx, target); err != nil {
			return final(err)
		}
		t.status.set("")
		return nil
	})
}

// final marks errors that do not go away by asking the chain again.
func final(err error) error {
	if evm.WrongChain(err) {
		return retry.Stop(err)
	}
	return err
}

// advance publishes up to a head, and what is final by now.
func (t *tenure) advance(ctx context.Context, head chain.BlockRef) error {
	for {
		path, err := t.path(ctx, head)
		if err != nil {
			return err
		}
		for _, block := range path {
			if behind := head.Number - min(head.Number, block.Number); behind > stride {
				t.status.set(fmt.Sprintf("catching up: block %d of %d", block.Number, head.Number))
			}
			if err := t.publish(ctx, block, block.Hash == head.Hash); err != nil {
				return err
			}
		}
		if len(path) == 0 || path[len(path)-1].Hash == head.Hash {
			return t.finalize(ctx)
		}
	}
}
