package sender

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/tier"
)

// watchPause is how often a signer's nonce is looked at.
const watchPause = time.Second

// stranger watches signers that the database has never given a nonce of, before the first is given: whoever sends with
// the same key meanwhile is another keeper, and this one must not begin. A signer whose past is known here needs no
// watch: a nonce that was not given out shows at once.
type stranger struct {
	node interface {
		NonceAt(ctx context.Context, account chain.Address, tag evm.Tag) (uint64, error)
	}
	store history
	span  time.Duration // how long to watch; 0 = not at all
}

// history is what the database knows of the past of signers.
type history interface {
	// Untouched tells whether no nonce of the signer was ever given out here.
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
func (s stranger) watch(ctx context.Context, signers []chain.Address) error {
	begun := time.Now()
	for seen := map[chain.Address]uint64{}; time.Since(begun) < s.span; {
		for _, account := range signers {
			if err := s.look(ctx, account, seen, time.Since(begun) < s.span/4); err != nil {
				return err
			}
		}
		select {
		case <-time.After(min(watchPause, s.span)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s stranger) look(ctx context.Context, account chain.Address, seen map[chain.Address]uint64, settling bool) error {
	count, err := s.node.NonceAt(ctx, account, evm.Latest)
	if err != nil {
		return err
	}
	before, known := seen[account]
	seen[account] = max(before, count)
	if !known || settling || count <= before {
		return nil
	}
	untouched, err := s.store.Untouched(ctx, account) // another copy of this sender may have begun meanwhile
	if err != nil || !untouched {
		return err
	}
	return retry.Stop(&inUseError{account, before, count})
}

// awaitQuiet watches those of the signers that are new here.
func (s *Sender) awaitQuiet(ctx context.Context, tell func(reason string)) error {
	watcher := stranger{node: s.node, store: s.history, span: s.cfg.Sender.SignerWatch}
	if watcher.span == 0 {
		return nil
	}
	var fresh []chain.Address
	for _, account := range s.addresses() {
		untouched, err := watcher.store.Untouched(ctx, account)
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
	tell(fmt.Sprintf("watching for %s whether the signers, which are new to this database, are in use elsewhere",
		watcher.span))
	return watcher.watch(ctx, fresh)
}

// notPeers refuses signers that the configuration says are another keeper's.
func notPeers(cfg tier.Config, keys []signer.Signer) error {
	for i, p := range cfg.Peers {
		for _, address := range p.Signers {
			for _, key := range keys {
				if key.Address() == address {
					return fmt.Errorf("tier.peers[%d]: signer %s is one of this keeper's own (a signer belongs to "+
						"one keeper: remove it here or there)", i, address)
				}
			}
		}
	}
	return nil
}
