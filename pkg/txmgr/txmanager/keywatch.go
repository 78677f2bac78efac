package txmanager

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
)

// watchPause is how often a signer's nonce is looked at.
const watchPause = time.Second

// KeyWatch watches signers that the database has never given a nonce of, before the first is given: whoever sends with
// the same key meanwhile is another keeper, and this one must not begin. A signer whose past is known here needs no
// watch: a nonce that was not given out shows at once.
type KeyWatch struct {
	Node  Counter
	Store History
	Span  time.Duration // how long to watch; 0 = not at all
}

// History is what the database knows of the past of signers.
type History interface {
	// Untouched reports whether no nonce of the signer was ever given out here.
	Untouched(ctx context.Context, signer chain.Address) (bool, error)
}

// inUseError ends a sender whose signer is somebody else's.
type inUseError struct {
	signer   chain.Address
	from, to uint64
}

func (e *inUseError) Error() string {
	return fmt.Sprintf("signer %s is in use elsewhere: its nonce went from %d to %d while this keeper sent nothing "+
		"(a signer belongs to one keeper: stop the other one, or give this one keys of its own)", e.signer, e.from,
		e.to)
}

// watch returns when nobody has used the signers for the whole span, or an inUseError that ends a retry. What the chain
// counts in the first quarter of the span is where it stands: endpoints may differ, and transactions of a past life may
// still be on their way.
func (w KeyWatch) watch(ctx context.Context, signers []chain.Address) error {
	begun := time.Now()
	for seen := map[chain.Address]uint64{}; time.Since(begun) < w.Span; {
		for _, account := range signers {
			if err := w.look(ctx, account, seen, time.Since(begun) < w.Span/4); err != nil {
				return err
			}
		}
		if !retry.Sleep(ctx, min(watchPause, w.Span)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (w KeyWatch) look(ctx context.Context, account chain.Address, seen map[chain.Address]uint64, settling bool) error {
	count, err := w.Node.NonceAt(ctx, account, evm.Latest)
	if err != nil {
		return err
	}
	before, known := seen[account]
	seen[account] = max(before, count)
	if !known || settling || count <= before {
		return nil
	}
	untouched, err := w.Store.Untouched(ctx, account) // another copy of this sender may have begun meanwhile
	if err != nil || !untouched {
		return err
	}
	return retry.Stop(&inUseError{account, before, count})
}

// Await watches those of the signers that are new here. It reports first that it does.
func (w KeyWatch) Await(ctx context.Context, signers []chain.Address, report func(reason string)) error {
	if w.Span == 0 {
		return nil
	}
	var fresh []chain.Address
	for _, account := range signers {
		untouched, err := w.Store.Untouched(ctx, account)
		if err != nil {
			return err
		}
		if untouched {
			fresh = append(fresh, account)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	report(fmt.Sprintf("watching for %s whether the signers, which are new to this database, are in use elsewhere",
		w.Span))
	return w.watch(ctx, fresh)
}
