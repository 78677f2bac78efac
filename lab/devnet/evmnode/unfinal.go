package evmnode

import (
	"context"
	"errors"
	"time"
)

// errManual is what a fork that has to wait for blocks meets on a chain that makes none by itself.
var errManual = errors.New("not enough blocks are open to a fork, and this chain makes them on demand only: stall " +
	"finality and mine first")

// ReorgUnfinalized replaces the newest depth blocks as a chain does whose votes fail for a while: finality stands still
// until so many blocks are not final, then the fork happens, then finality goes on. No final block is replaced. It
// waits for as many blocks as that takes.
func (n *Node) ReorgUnfinalized(ctx context.Context, depth uint64, style ForkStyle) (Fork, error) {
	if err := style.check(); err != nil {
		return Fork{}, err
	}
	if err := n.reachable(depth, n.Head().Number.Uint64()); err != nil {
		return Fork{}, err
	}
	held := n.finality.isHeld()
	n.StallFinality()
	if !held {
		defer n.finality.release()
	}
	if err := n.awaitOpen(ctx, depth); err != nil {
		return Fork{}, err
	}
	return n.Reorg(depth, style)
}

// awaitOpen waits until more than depth blocks lie above the finalized one.
func (n *Node) awaitOpen(ctx context.Context, depth uint64) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		head := n.Head().Number.Uint64()
		_, finalized := n.finality.tags(head, n.cfg.SafeLag, n.cfg.FinalizedLag)
		if head >= finalized+depth {
			return nil
		}
		if n.cfg.Manual {
			return errManual
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
