package scanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// run publishes the chain until ctx ends, another scanner takes over, or something cannot be mended by trying again.
func (t *tenure) run(ctx context.Context, heads <-chan chain.BlockRef) error {
	group, ctx := errgroup.WithContext(ctx)
	from := t.streams[0].next
	group.Go(func() error { return t.watch(ctx, from) })
	group.Go(func() error { return t.auditWords(ctx) })
	group.Go(func() error { return t.compareDeciding(ctx) })
	group.Go(func() error { return t.serve(ctx, heads) })
	return group.Wait()
}

// serve follows the chain for as long as it does not contradict itself, and rests on a topic that has halted, at a
// record that no batch can hold, or at a log that nobody can route: ending the process would leave an EPOCH on the
// topic at each restart. A chain that has left more than readers can undo ends it all the same, at that price: the
// next start may find another node's branch.
func (t *tenure) serve(ctx context.Context, heads <-chan chain.BlockRef) error {
	err := t.follow(ctx, heads)
	if v, broken := errors.AsType[*violation](err); broken {
		err = t.halt(ctx, wire.Halt{Block: v.final, Reason: v.Error()})
	}
	if at, stuck := stuckBlock(err); stuck {
		t.log.Error().Uint64("block", at).Msg(err.Error())
		t.stuckAt = at
		return t.rest(ctx, heads, err)
	}
	if h, halted := t.halted(); halted && err == nil {
		return t.rest(ctx, heads, errors.New(h.Reason))
	}
	return err
}

// stuckBlock is the block that an error keeps from being published until this process runs otherwise.
func stuckBlock(err error) (number uint64, stuck bool) {
	if large, is := errors.AsType[*tooLargeError](err); is {
		return large.block, true
	}
	if unroutable, is := errors.AsType[*unroutableError](err); is {
		return unroutable.block, true
	}
	return 0, false
}

// follow publishes up to each head. It returns without an error on a topic that has halted.
func (t *tenure) follow(ctx context.Context, heads <-chan chain.BlockRef) error {
	if h, halted := t.halted(); halted {
		if lifted, err := t.liftHalt(ctx, h); err != nil || !lifted {
			return err
		}
	}
	var head chain.BlockRef // none at first: the newest may have been announced before this tenure
	for {
		if err := t.reach(ctx, head); err != nil {
			return err
		}
		var err error
		if head, err = t.next(ctx, heads); err != nil {
			return err
		}
	}
}

// next waits for a head. Where none comes for a while it publishes what is final, and asks again until the tip is: a
// chain that makes no blocks may still call some final.
func (t *tenure) next(ctx context.Context, heads <-chan chain.BlockRef) (head chain.BlockRef, err error) {
	pause := time.NewTimer(finalPause)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			t.finalize(ctx) // more may be by now, or known to a second host
			if err := t.publishFinal(ctx); err != nil {
				return chain.BlockRef{}, err
			}
			t.words.finalize(t.final(), t.lowestTip())
			if t.called.Number < t.lowestTip() {
				pause.Reset(finalPause)
			}
		case head = <-heads:
			return head, context.Cause(ctx)
		case <-ctx.Done():
			return chain.BlockRef{}, context.Cause(ctx)
		}
	}
}

// reach publishes up to a head, or up to the node's own where none is given or something went wrong. What the node
// does not answer is asked again without end.
func (t *tenure) reach(ctx context.Context, head chain.BlockRef) error {
	policy := retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(attempt int, err error, _ time.Duration) {
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
		if err = t.advance(ctx, target); err != nil {
			err = t.mend(ctx, target, err)
		}
		if err != nil {
			return err
		}
		t.status.set("")
		t.isCaughtUp()
		return nil
	})
}

// isCaughtUp notes that the head has been published.
func (t *tenure) isCaughtUp() {
	t.words.finalize(t.final(), t.lowestTip())
	select {
	case <-t.caughtUp:
	default:
		close(t.caughtUp)
	}
}

// mend does what can be done about an error of publishing up to a head, and returns what is left of it.
func (t *tenure) mend(ctx context.Context, head chain.BlockRef, err error) error {
	if other, is := errors.AsType[*otherChainError](err); is {
		return cmp.Or(t.doubted(ctx, other.oldest, other.block, "the oldest that readers can go back to"), err)
	}
	v, broken := errors.AsType[*violation](err)
	if !broken {
		return final(err)
	}
	if doubt := t.doubted(ctx, v.final, v.block, "which was final"); doubt != nil {
		return doubt
	}
	lifted, failed := t.lift(ctx, v)
	switch {
	case failed != nil:
		return failed
	case lifted:
		return final(t.advance(ctx, head))
	default:
		return err
	}
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
		if err := t.backfill(ctx, head); err != nil {
			return err
		}
		path, err := t.path(ctx, head)
		if err != nil {
			return err
		}
		for _, block := range path {
			if err := t.publish(ctx, block); err != nil {
				return err
			}
			if behind := head.Number - min(head.Number, block.Number); behind > stride {
				t.status.set(fmt.Sprintf("catching up: block %d of %d", block.Number, head.Number))
			}
		}
		if len(path) == 0 || path[len(path)-1].Hash == head.Hash {
			t.finalize(ctx)
			return nil
		}
	}
}
