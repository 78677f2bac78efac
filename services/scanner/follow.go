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

// run publishes the chain until ctx ends, another scanner takes over, or something cannot be helped by trying again.
func (w *writer) run(ctx context.Context, heads <-chan chain.BlockRef) error {
	group, ctx := errgroup.WithContext(ctx)
	from := w.streams[0].next
	group.Go(func() error { return w.watch(ctx, from) })
	group.Go(func() error { return w.auditWords(ctx) })
	group.Go(func() error { return w.compareDeciding(ctx) })
	group.Go(func() error { return w.serve(ctx, heads) })
	return group.Wait()
}

// serve follows the chain for as long as it does not contradict itself, and rests on a topic that has halted, at a
// record that no batch can hold, or at a log that nobody can route: ending the process would leave an EPOCH on the
// topic at each restart. A chain that has left more than readers can undo ends it all the same, at that price: the
// next start may find another node's branch.
func (w *writer) serve(ctx context.Context, heads <-chan chain.BlockRef) error {
	err := w.follow(ctx, heads)
	if v, broken := errors.AsType[*violation](err); broken {
		err = w.halt(ctx, wire.Halt{Block: v.final, Reason: v.Error()})
	}
	if at, stuck := stuckBlock(err); stuck {
		w.log.Error().Uint64("block", at).Msg(err.Error())
		w.stuckAt = at
		return w.idle(ctx, heads, err)
	}
	if h, halted := w.halted(); halted && err == nil {
		return w.idle(ctx, heads, errors.New(h.Reason))
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
func (w *writer) follow(ctx context.Context, heads <-chan chain.BlockRef) error {
	if h, halted := w.halted(); halted {
		if lifted, err := w.liftHalt(ctx, h); err != nil || !lifted {
			return err
		}
	}
	var head chain.BlockRef // none at first: the newest may have been announced before this epoch
	for {
		if err := w.reach(ctx, head); err != nil {
			return err
		}
		var err error
		if head, err = w.next(ctx, heads); err != nil {
			return err
		}
	}
}

// next waits for a head. Where none comes for a while it publishes what is final, and asks again until the tip is: a
// chain that makes no blocks may still call some final.
func (w *writer) next(ctx context.Context, heads <-chan chain.BlockRef) (head chain.BlockRef, err error) {
	pause := time.NewTimer(finalPause)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			w.finalize(ctx) // more may be by now, or known to a second host
			if err := w.publishFinal(ctx); err != nil {
				return chain.BlockRef{}, err
			}
			w.words.finalize(w.final(), w.lowestTip())
			if w.called.Number < w.lowestTip() {
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
func (w *writer) reach(ctx context.Context, head chain.BlockRef) error {
	policy := retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(attempt int, err error, _ time.Duration) {
			w.status.fail(err)
			if attempt == 1 {
				w.log.Warn().Err(err).Msg("cannot go on from the chain, trying again")
				return
			}
			w.log.Debug().Err(err).Int("attempt", attempt).Msg("still cannot go on from the chain")
		}}
	return retry.Do(ctx, policy, func(ctx context.Context) (err error) {
		target := head
		head = chain.BlockRef{}
		if target.Hash.IsZero() {
			if target, err = w.chain.Head(ctx); err != nil {
				return final(err)
			}
		}
		w.status.saw(target)
		if err = w.advance(ctx, target); err != nil {
			err = w.handleError(ctx, target, err)
		}
		if err != nil {
			return err
		}
		w.status.set("")
		w.isCaughtUp()
		return nil
	})
}

// isCaughtUp notes that the head has been published.
func (w *writer) isCaughtUp() {
	w.words.finalize(w.final(), w.lowestTip())
	select {
	case <-w.caughtUp:
	default:
		close(w.caughtUp)
	}
}

// handleError does what can be done about an error of publishing up to a head, and returns what is left of it.
func (w *writer) handleError(ctx context.Context, head chain.BlockRef, err error) error {
	if other, is := errors.AsType[*otherChainError](err); is {
		return cmp.Or(w.confirmLeft(ctx, other.oldest, other.block, "the oldest that readers can go back to"), err)
	}
	v, broken := errors.AsType[*violation](err)
	if !broken {
		return final(err)
	}
	if unconfirmed := w.confirmLeft(ctx, v.final, v.block, "which was final"); unconfirmed != nil {
		return unconfirmed
	}
	lifted, failed := w.lift(ctx, v)
	switch {
	case failed != nil:
		return failed
	case lifted:
		return final(w.advance(ctx, head))
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
func (w *writer) advance(ctx context.Context, head chain.BlockRef) error {
	for {
		if err := w.backfill(ctx, head); err != nil {
			return err
		}
		path, err := w.path(ctx, head)
		if err != nil {
			return err
		}
		for _, block := range path {
			if err := w.publish(ctx, block); err != nil {
				return err
			}
			if behind := head.Number - min(head.Number, block.Number); behind > stride {
				w.status.set(fmt.Sprintf("catching up: block %d of %d", block.Number, head.Number))
			}
		}
		if len(path) == 0 || path[len(path)-1].Hash == head.Hash {
			w.finalize(ctx)
			return nil
		}
	}
}
